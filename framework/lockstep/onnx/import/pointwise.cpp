// Functions of each element, and conversions between types.
#include <functional>
#include <limits>

#include "lockstep/onnx/import/node_reader.h"
#include "lockstep/ops/dropout.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/to_floating.h"

namespace lockstep::onnx {
namespace {

template <Value (*function)(Value)>
void read_function(const NodeReader& r) {
  r.set(function(r.value(0)));
}

// A function of two operands; a constant number is a constant of the trace, which costs no operand.
template <class Values, class Left, class Right>
void read_pair(const NodeReader& r, Values values, Left number_left, Right number_right) {
  double number = 0;
  if (r.is_number(1, number)) {
    r.set(number_right(r.value(0), number));
  } else if (r.is_number(0, number)) {
    r.set(number_left(number, r.value(1)));
  } else {
    r.set(values(r.value(0), r.value(1)));
  }
}

template <class Function>
void read_arithmetic(const NodeReader& r, Function f) {
  read_pair(r, f, f, f);
}

void read_power(const NodeReader& r) {
  double exponent = 0;
  r.set(r.is_number(1, exponent) ? power(r.value(0), exponent) : power(r.value(0), r.value(1)));
}

template <Value (*pair)(Value, Value)>
Value joined(const NodeReader& r) {
  Value result = r.value(0);
  for (std::size_t i = 1; i < r.inputs(); ++i) result = pair(result, r.value(i));
  return result;
}

void read_mean(const NodeReader& r) { r.set(joined<add>(r) / static_cast<double>(r.inputs())); }

void read_clip(const NodeReader& r) {
  constexpr double kAll = std::numeric_limits<double>::infinity();
  const bool by_attributes = r.has_attribute("min") || r.has_attribute("max");
  const double low = by_attributes ? r.real_attribute("min", -kAll) : r.has(1) ? r.real(1, "min") : -kAll;
  const double high = by_attributes ? r.real_attribute("max", kAll) : r.has(2) ? r.real(2, "max") : kAll;
  r.set(clamp(r.value(0), low, high));
}

void read_hard_sigmoid(const NodeReader& r) {
  const double alpha = r.real_attribute("alpha", 0.2), beta = r.real_attribute("beta", 0.5);
  r.set(clamp(scale_shift(r.value(0), alpha, beta), 0, 1));
}

void read_selu(const NodeReader& r) {
  const double alpha = r.real_attribute("alpha", 1.6732632423543772),
               gamma = r.real_attribute("gamma", 1.0507009873554805);
  r.set(elu(r.value(0), alpha) * gamma);
}

void read_gelu(const NodeReader& r) {
  const std::string form = r.text_attribute("approximate", "none");
  r.require(form == "none" || form == "tanh", formatted("approximate is {}, expected none or tanh", form));
  r.set(form == "none" ? gelu(r.value(0)) : gelu_tanh(r.value(0)));
}

void read_prelu(const NodeReader& r) {
  const Value x = r.value(0), slope = r.value(1);
  r.set(relu(x) - slope * relu(-x));
}

void read_not(const NodeReader& r) { r.set(1.0 - r.value(0)); }

// Conditions here are numbers, of which 0 is false; "where" tests for a number greater than 0.
void read_where(const NodeReader& r) { r.set(where(r.value(0), r.value(1), r.value(2))); }

// 1 float32, 10 float16, 11 float64, 16 bfloat16: the types of this trace take their place. A condition is a number.
void read_cast(const NodeReader& r) {
  const Value x = r.value(0);
  const std::int64_t to = r.whole_attribute("to", 0);
  const bool floating = to == 1 || to == 10 || to == 11 || to == 16;
  const bool condition = to == 9 && is_floating(x.dtype());
  if (floating && !is_floating(x.dtype())) {
    r.set(to_floating(x, r.graph().dtype()));
  } else {
    r.require(floating || condition || !is_floating(x.dtype()),
              formatted("{} values become whole numbers (type {}), which no op here does", name_of(x.dtype()), to));
    r.set(condition ? not_equal(x, 0.0) : x);
  }
}

void read_identity(const NodeReader& r) { r.set(r.value(0)); }

void read_dropout(const NodeReader& r) {
  const double ratio = r.has(1) ? r.real(1, "ratio") : r.real_attribute("ratio", 0.5);
  r.set(r.graph().training() && ratio > 0 ? dropout(r.value(0), ratio, r.node().name) : r.value(0));
}

}  // namespace

std::span<const Reading> pointwise_readings() {
  static const std::vector<Reading> readings{
      {"Relu", read_function<relu>},
      {"Sigmoid", read_function<sigmoid>},
      {"Tanh", read_function<tanh>},
      {"Exp", read_function<exp>},
      {"Log", read_function<log>},
      {"Sqrt", read_function<sqrt>},
      {"Erf", read_function<erf>},
      {"Sin", read_function<sin>},
      {"Cos", read_function<cos>},
      {"Abs", read_function<abs>},
      {"Sign", read_function<sign>},
      {"Reciprocal", read_function<reciprocal>},
      {"HardSwish", read_function<hard_swish>},
      {"Neg", [](const NodeReader& r) { r.set(-r.value(0)); }},
      {"Softplus", [](const NodeReader& r) { r.set(softplus(r.value(0))); }},
      {"Softsign", [](const NodeReader& r) { r.set(r.value(0) / (abs(r.value(0)) + 1.0)); }},
      {"Mish", [](const NodeReader& r) { r.set(r.value(0) * tanh(softplus(r.value(0)))); }},
      {"LeakyRelu",
       [](const NodeReader& r) { r.set(leaky_relu(r.value(0), r.real_attribute("alpha", 0.01))); },
       {"alpha"}},
      {"Elu", [](const NodeReader& r) { r.set(elu(r.value(0), r.real_attribute("alpha", 1))); }, {"alpha"}},
      {"Selu", read_selu, {"alpha", "gamma"}},
      {"HardSigmoid", read_hard_sigmoid, {"alpha", "beta"}},
      {"Gelu", read_gelu, {"approximate"}},
      {"PRelu", read_prelu},
      {"Clip", read_clip, {"min", "max"}},
      {"Add", [](const NodeReader& r) { read_arithmetic(r, std::plus<>()); }},
      {"Sub", [](const NodeReader& r) { read_arithmetic(r, std::minus<>()); }},
      {"Mul", [](const NodeReader& r) { read_arithmetic(r, std::multiplies<>()); }},
      {"Div", [](const NodeReader& r) { read_arithmetic(r, std::divides<>()); }},
      {"Pow", read_power},
      {"Max", [](const NodeReader& r) { r.set(joined<maximum>(r)); }},
      {"Min", [](const NodeReader& r) { r.set(joined<minimum>(r)); }},
      {"Sum", [](const NodeReader& r) { r.set(joined<add>(r)); }},
      {"Mean", read_mean},
      {"Greater", [](const NodeReader& r) { r.set(greater(r.value(0), r.value(1))); }},
      {"GreaterOrEqual", [](const NodeReader& r) { r.set(greater_equal(r.value(0), r.value(1))); }},
      {"Less", [](const NodeReader& r) { r.set(less(r.value(0), r.value(1))); }},
      {"LessOrEqual", [](const NodeReader& r) { r.set(less_equal(r.value(0), r.value(1))); }},
      {"Equal", [](const NodeReader& r) { r.set(equal(r.value(0), r.value(1))); }},
      {"And", [](const NodeReader& r) { r.set(joined<multiply>(r)); }},
      {"Or", [](const NodeReader& r) { r.set(joined<maximum>(r)); }},
      {"Not", read_not},
      {"Where", read_where},
      {"Cast", read_cast, {"to", "saturate"}},
      {"Identity", read_identity},
      {"Dropout", read_dropout, {"ratio", "seed"}},
  };
  return readings;
}

}  // namespace lockstep::onnx

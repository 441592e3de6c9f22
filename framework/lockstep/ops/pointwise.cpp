#include "lockstep/ops/pointwise.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/to_floating.h"

namespace lockstep {

using pointwise::Expression;
using pointwise::Scalar;

namespace {

// The condition in the type of the values between which it chooses.
Value condition_for(Value condition, DType type) {
  const bool converts = !is_floating(condition.dtype()) || (condition.dtype() == DType::F32 && type == DType::BF16);
  if (!converts) return condition;
  return is_floating(condition.dtype()) ? cast(condition, type) : to_floating(condition, type);
}

}  // namespace

Value apply_pointwise(std::string_view name, std::vector<Value> operands, const std::vector<double>& constants) {
  DType wide = DType::BF16;
  for (const Value v : operands) {
    if (v.dtype() != DType::BF16) wide = v.dtype();
  }
  Expression expression;
  std::vector<Scalar> inputs;
  for (Value& v : operands) {
    if (v.dtype() == DType::BF16) v = cast(v, wide);
    inputs.push_back(expression.input(static_cast<int>(inputs.size())));
  }
  for (const double c : constants) inputs.push_back(expression.constant(c));
  expression.set_result(pointwise::apply(name, inputs));
  return apply_op(std::make_shared<PointwiseOp>(std::move(expression)), std::move(operands));
}

Value relu(Value x) { return apply_pointwise("relu", {x}); }
Value gate(Value y, Value d) { return apply_pointwise("gate", {y, d}); }
Value exp(Value x) { return apply_pointwise("exp", {x}); }
Value log(Value x) { return apply_pointwise("log", {x}); }
Value sqrt(Value x) { return apply_pointwise("sqrt", {x}); }
Value tanh(Value x) { return apply_pointwise("tanh", {x}); }
Value sigmoid(Value x) { return apply_pointwise("sigmoid", {x}); }
Value log_sigmoid(Value x) { return apply_pointwise("log_sigmoid", {x}); }
Value erf(Value x) { return apply_pointwise("erf", {x}); }
Value gelu(Value x) { return apply_pointwise("gelu", {x}); }
Value gelu_tanh(Value x) { return apply_pointwise("gelu_tanh", {x}); }
Value sin(Value x) { return apply_pointwise("sin", {x}); }
Value cos(Value x) { return apply_pointwise("cos", {x}); }
Value square(Value x) { return apply_pointwise("square", {x}); }
Value abs(Value x) { return apply_pointwise("abs", {x}); }
Value sign(Value x) { return apply_pointwise("sign", {x}); }
Value add(Value a, Value b) { return apply_pointwise("add", {a, b}); }
Value subtract(Value a, Value b) { return apply_pointwise("subtract", {a, b}); }
Value multiply(Value a, Value b) { return apply_pointwise("multiply", {a, b}); }
Value divide(Value a, Value b) { return apply_pointwise("divide", {a, b}); }
Value maximum(Value a, Value b) { return apply_pointwise("maximum", {a, b}); }
Value minimum(Value a, Value b) { return apply_pointwise("minimum", {a, b}); }
Value power(Value x, Value y) { return apply_pointwise("power", {x, y}); }
Value reciprocal(Value x) { return apply_pointwise("reciprocal", {x}); }

Value relu6(Value x) { return apply_pointwise("relu6", {x}); }
Value silu(Value x) { return apply_pointwise("silu", {x}); }
Value leaky_relu(Value x, double slope) { return apply_pointwise("leaky_relu", {x}, {slope}); }
Value elu(Value x, double alpha) { return apply_pointwise("elu", {x}, {alpha}); }
Value softplus(Value x, double beta, double threshold) { return apply_pointwise("softplus", {x}, {beta, threshold}); }
Value hard_sigmoid(Value x) { return apply_pointwise("hard_sigmoid", {x}); }
Value hard_swish(Value x) { return apply_pointwise("hard_swish", {x}); }
Value clamp(Value x, double low, double high) { return apply_pointwise("clamp", {x}, {low, high}); }
Value clamp(Value x, Value low, Value high) { return apply_pointwise("clamp", {x, low, high}); }

Value detach(Value x) { return apply_pointwise("detach", {x}); }

Value greater(Value a, Value b) { return apply_pointwise("greater", {a, b}); }
Value greater(Value a, double b) { return apply_pointwise("greater", {a}, {b}); }
Value greater_equal(Value a, Value b) { return apply_pointwise("greater_equal", {a, b}); }
Value greater_equal(Value a, double b) { return apply_pointwise("greater_equal", {a}, {b}); }
Value less(Value a, Value b) { return apply_pointwise("less", {a, b}); }
Value less(Value a, double b) { return apply_pointwise("less", {a}, {b}); }
Value less_equal(Value a, Value b) { return apply_pointwise("less_equal", {a, b}); }
Value less_equal(Value a, double b) { return apply_pointwise("less_equal", {a}, {b}); }
Value equal(Value a, Value b) { return apply_pointwise("equal", {a, b}); }
Value equal(Value a, double b) { return apply_pointwise("equal", {a}, {b}); }
Value not_equal(Value a, Value b) { return apply_pointwise("not_equal", {a, b}); }
Value not_equal(Value a, double b) { return apply_pointwise("not_equal", {a}, {b}); }

Value where(Value condition, Value a, Value b) {
  const DType type = a.dtype() == DType::BF16 ? b.dtype() : a.dtype();
  return apply_pointwise("where", {condition_for(condition, type), a, b});
}

Value where(Value condition, Value a, double b) {
  return apply_pointwise("where", {condition_for(condition, a.dtype()), a}, {b});
}

Value where(Value condition, double a, Value b) {
  Expression expression;
  const Scalar c = expression.input(0), other = expression.input(1);
  expression.set_result(pointwise::apply("where", {c, expression.constant(a), other}));
  const Value values[] = {condition_for(condition, b.dtype()), b};
  return pointwise_value(expression, values);
}

Value power(Value x, double y) {
  Expression expression;
  const Scalar a = expression.input(0);
  expression.set_result(pointwise::apply("power", {a, expression.constant(y)}));
  return pointwise_value(expression, std::span(&x, 1));
}

Value scale_shift(Value x, double scale, double shift) {
  Expression expression;
  Scalar y = expression.input(0) * scale;
  if (shift != 0) y = y + shift;
  if (y.term() == 0) return x;
  expression.set_result(y);
  return pointwise_value(expression, std::span(&x, 1));
}

Value operator/(Value x, double b) {
  Expression expression;
  expression.set_result(expression.input(0) / b);
  return pointwise_value(expression, std::span(&x, 1));
}

Value operator/(double a, Value x) {
  Expression expression;
  expression.set_result(a / expression.input(0));
  return pointwise_value(expression, std::span(&x, 1));
}

}  // namespace lockstep

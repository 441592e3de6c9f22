#include <algorithm>
#include <cmath>

#include "lockstep/core/random.h"
#include "lockstep/ops/dropout.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/to_floating.h"
#include "tests/ops/row.h"

namespace lockstep::optest {
namespace {

template <class F>
Array each(const Array& x, F f) {
  Array y(x.shape);
  for (std::size_t i = 0; i < x.values.size(); ++i) y.values[i] = f(x.values[i]);
  return y;
}

Row unary(std::string config, Value (*op)(Value), double (*f)(double), double low = -2, double high = 2) {
  return {.op = "pointwise",
          .config = std::move(config),
          .operands = {{Shape{3, 5, 7}, low, high}},
          .trace = [=](auto v) { return op(v[0]); },
          .reference = [=](auto in) { return each(in[0], f); }};
}

Row binary(std::string config, Value (*op)(Value, Value), double (*f)(double, double)) {
  return {.op = "pointwise",
          .config = std::move(config),
          .operands = {{Shape{2, 3, 3, 5}}, {Shape{2, 3, 3, 5}}},
          .trace = [=](auto v) { return op(v[0], v[1]); },
          .reference =
              [=](auto in) {
                Array y(in[0].shape);
                for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] = f(in[0].values[i], in[1].values[i]);
                return y;
              }};
}

Row dropout_row(double probability, Shape shape) {
  constexpr const char* site = "features.3";
  return {.op = "dropout",
          .config = probability < 0.5 ? "rarely" : "often",
          .operands = {{std::move(shape)}},
          .trace = [=](auto v) { return dropout(v[0], probability, site); },
          .reference =  // the table's runs have seed 3, step 7, and sample ids from 100
          [=](auto in) {
            Array y(in[0].shape);
            const std::int64_t per_sample = y.shape.tail().elements();
            for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
              const auto sample = static_cast<std::uint64_t>(100 + i / per_sample),
                         element = static_cast<std::uint64_t>(i % per_sample);
              const Philox words = philox(mix(3, hash_name(site)), element / 4, mix(7, sample));
              y[i] = unit_interval(words[element % 4]) < probability ? 0 : in[0][i] / (1 - probability);
            }
            return y;
          }};
}

Array reshaped(const Array& x, Shape shape) {
  Array y(std::move(shape));
  y.values = x.values;
  return y;
}

Array total(const Array& x, double factor) {
  Array y(Shape{});
  for (double v : x.values) y[0] += factor * v;
  return y;
}

}  // namespace

std::vector<Row> elementwise_rows() {
  return {
      unary("relu", relu, [](double x) { return std::max(x, 0.0); }),
      unary("exp", exp, [](double x) { return std::exp(x); }),
      unary(
          "log", log, [](double x) { return std::log(x); }, 0.5, 3),
      unary(
          "sqrt", sqrt, [](double x) { return std::sqrt(x); }, 0.5, 3),
      unary("tanh", tanh, [](double x) { return std::tanh(x); }),
      unary(
          "sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, -4, 4),
      unary(
          "log_sigmoid", log_sigmoid, [](double x) { return -std::log1p(std::exp(-x)); }, -6, 6),
      unary("square", square, [](double x) { return x * x; }),
      unary("abs", abs, [](double x) { return std::abs(x); }),
      unary("erf", erf, [](double x) { return std::erf(x); }),
      unary("gelu", gelu, [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }),
      unary("gelu_tanh", gelu_tanh,
            [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }),
      unary("sin", sin, [](double x) { return std::sin(x); }),
      unary("cos", cos, [](double x) { return std::cos(x); }),
      unary(
          "sign", [](Value x) { return sign(x) * x; }, [](double x) { return std::abs(x); }),
      unary(
          "cube", [](Value x) { return power(x, 3.0); }, [](double x) { return x * x * x; }),
      unary(
          "value_plus_number", [](Value x) { return x + 1.5; }, [](double x) { return x + 1.5; }),
      unary(
          "number_plus_value", [](Value x) { return 1.5 + x; }, [](double x) { return 1.5 + x; }),
      unary(
          "value_minus_number", [](Value x) { return x - 1.5; }, [](double x) { return x - 1.5; }),
      unary(
          "number_minus_value", [](Value x) { return 1 - x; }, [](double x) { return 1 - x; }),
      unary(
          "value_times_number", [](Value x) { return x * 3.0; }, [](double x) { return x * 3.0; }),
      unary(
          "number_times_value", [](Value x) { return 3 * x; }, [](double x) { return 3 * x; }),
      unary(
          "value_over_number", [](Value x) { return x / 3.0; }, [](double x) { return x / 3.0; }),
      unary(
          "number_over_value", [](Value x) { return 3 / x; }, [](double x) { return 3 / x; }, 0.5, 3),
      binary(
          "divide", [](Value a, Value b) { return a / (b + 2.5); }, [](double a, double b) { return a / (b + 2.5); }),
      binary("maximum", maximum, [](double a, double b) { return std::max(a, b); }),
      binary("minimum", minimum, [](double a, double b) { return std::min(a, b); }),
      unary(
          "reciprocal", reciprocal, [](double x) { return 1 / x; }, 0.5, 3),
      unary(
          "relu6", relu6, [](double x) { return std::min(std::max(x, 0.0), 6.0); }, -4, 10),
      unary("silu", silu, [](double x) { return x / (1 + std::exp(-x)); }),
      unary(
          "leaky_relu", [](Value x) { return leaky_relu(x, 0.3); }, [](double x) { return x > 0 ? x : 0.3 * x; }),
      unary(
          "elu", [](Value x) { return elu(x, 1.7); }, [](double x) { return x > 0 ? x : 1.7 * std::expm1(x); }),
      unary(
          "elu_beyond_the_range_of_exp", [](Value x) { return elu(x) * 0.001; },
          [](double x) { return (x > 0 ? x : std::expm1(x)) * 0.001; }, -900, 900),
      unary(
          "softplus", [](Value x) { return softplus(x); }, [](double x) { return std::log1p(std::exp(x)); }),
      unary(
          "softplus_with_threshold", [](Value x) { return softplus(x, 1.5, 2); },
          [](double x) { return 1.5 * x > 2 ? x : std::log1p(std::exp(1.5 * x)) / 1.5; }),
      unary(
          "softplus_beyond_the_range_of_exp", [](Value x) { return softplus(x, 2, INFINITY) * 0.001; },
          [](double x) { return (std::max(x, 0.0) + std::log1p(std::exp(-2 * std::abs(x))) / 2) * 0.001; }, -900, 900),
      unary(
          "hard_sigmoid", hard_sigmoid, [](double x) { return std::min(std::max(x + 3, 0.0), 6.0) / 6; }, -5, 5),
      unary(
          "hard_swish", hard_swish, [](double x) { return x * std::min(std::max(x + 3, 0.0), 6.0) / 6; }, -5, 5),
      unary(
          "clamp", [](Value x) { return clamp(x, -1.1, 0.75); },
          [](double x) { return std::min(std::max(x, -1.1), 0.75); }),
      unary(
          "clamp_from_below", [](Value x) { return clamp(x, 0.5, INFINITY); },
          [](double x) { return std::max(x, 0.5); }),
      {.op = "pointwise",
       .config = "clamp_by_values",
       .operands = {{Shape{3, 7}, -2, 2}, {Shape{3, 1}, -1, 0.5}, {Shape{7}, 0, 1}},
       .trace = [](auto v) { return clamp(v[0], v[1], v[2]); },
       .reference =
           [](auto in) {
             Array y(in[0].shape);
             for (std::int64_t i = 0; i < 21; ++i) y[i] = std::min(std::max(in[0][i], in[1][i / 7]), in[2][i % 7]);
             return y;
           }},
      binary(
          "greater", [](Value a, Value b) { return where(greater(a, b + 0.003), a * a, b); },
          [](double a, double b) { return a > b + 0.003 ? a * a : b; }),
      binary(
          "greater_equal", [](Value a, Value b) { return where(greater_equal(a, b + 0.003), a * a, b); },
          [](double a, double b) { return a >= b + 0.003 ? a * a : b; }),
      binary(
          "less", [](Value a, Value b) { return where(less(a, b + 0.003), a * a, b); },
          [](double a, double b) { return a < b + 0.003 ? a * a : b; }),
      binary(
          "less_equal", [](Value a, Value b) { return where(less_equal(a, b + 0.003), a * a, b); },
          [](double a, double b) { return a <= b + 0.003 ? a * a : b; }),
      binary(
          "equal", [](Value a, Value b) { return where(equal(sign(a), sign(b)), a * b, a + b); },
          [](double a, double b) { return (a > 0) == (b > 0) ? a * b : a + b; }),
      binary(
          "not_equal", [](Value a, Value b) { return where(not_equal(sign(a), sign(b)), a * b, a + b); },
          [](double a, double b) { return (a > 0) != (b > 0) ? a * b : a + b; }),
      unary(
          "comparisons_with_numbers",
          [](Value x) {
            return x * (greater(x, 1.0) + 2 * greater_equal(x, 0.5) + 4 * less(x, -1.0) + 8 * less_equal(x, -0.5) +
                        16 * equal(sign(x), 1) + 32 * not_equal(sign(x), 1));
          },
          [](double x) {
            return x *
                   ((x > 1 ? 1 : 0) + (x >= 0.5 ? 2 : 0) + (x < -1 ? 4 : 0) + (x <= -0.5 ? 8 : 0) + (x > 0 ? 16 : 32));
          }),
      unary(
          "detach", [](Value x) { return x * x * detach(sign(x)); }, [](double x) { return x * std::abs(x); }),
      unary(
          "where_with_numbers", [](Value x) { return where(greater(x, 0), x * x, 0.25) + where(less(x, 1), 2, x); },
          [](double x) { return (x > 0 ? x * x : 0.25) + (x < 1 ? 2 : x); }),
      {.op = "pointwise",
       .config = "where_label",
       .operands = {{Shape{2, 4}}, {Shape{2, 4}}},
       .trace =
           [](auto v) {
             const Value label = v[0].graph().input("target", {Shape{4}, DType::I32});
             return where(label, v[0] * v[1], v[0]) + to_floating(label, v[0].dtype()) * v[1];
           },
       .reference =
           [](auto in) {
             Array y(Shape{2, 4});
             const double label[] = {0, 3, -1, 7};
             for (std::int64_t i = 0; i < 8; ++i)
               y[i] = (i % 4 == 0 ? in[0][i] : in[0][i] * in[1][i]) + label[i % 4] * in[1][i];
             return y;
           },
       .targets = {0, 3, -1, 7}},
      {.op = "pointwise",
       .config = "broadcast_to",
       .operands = {{Shape{3, 1}}},
       .trace =
           [](auto v) {
             return broadcast_to(v[0], Shape{2, 3, 4});
           },
       .reference =
           [](auto in) {
             Array y(Shape{2, 3, 4});
             for (std::int64_t i = 0; i < 24; ++i) y[i] = in[0][i / 4 % 3];
             return y;
           }},
      binary(
          "power", [](Value a, Value b) { return power(exp(a), b); },
          [](double a, double b) { return std::exp(a * b); }),
      {.op = "pointwise",
       .config = "broadcast",
       .operands = {{Shape{2, 3, 4}}, {Shape{3, 1}}, {Shape{}}},
       .trace = [](auto v) { return v[0] * v[1] + v[2]; },
       .reference =
           [](auto in) {
             Array y(Shape{2, 3, 4});
             for (std::int64_t i = 0; i < 24; ++i) y[i] = in[0][i] * in[1][i / 4 % 3] + in[2][0];
             return y;
           }},
      {.op = "sum",
       .config = "to_rows",
       .operands = {{Shape{2, 3, 4}}},
       .trace =
           [](auto v) {
             return sum_to(v[0], Shape{3, 1});
           },
       .reference =
           [](auto in) {
             Array y(Shape{3, 1});
             for (std::int64_t i = 0; i < 24; ++i) y[i / 4 % 3] += in[0][i];
             return y;
           }},
      binary("add", add, [](double a, double b) { return a + b; }),
      binary("subtract", subtract, [](double a, double b) { return a - b; }),
      binary("multiply", multiply, [](double a, double b) { return a * b; }),
      {.op = "pointwise",
       .config = "scale_and_shift",
       .operands = {{Shape{3, 7}}},
       .trace = [](auto v) { return scale_shift(v[0], -2.5, 0.75); },
       .reference = [](auto in) { return each(in[0], [](double x) { return -2.5 * x + 0.75; }); }},
      dropout_row(0.25, Shape{4, 3, 2, 3}),
      dropout_row(0.8, Shape{5, 7}),
      {.op = "reshape",
       .config = "flatten",
       .operands = {{Shape{2, 3, 2, 5}}},
       .trace = [](auto v) { return flatten(v[0]); },
       .reference =
           [](auto in) {
             return reshaped(in[0], Shape{2, 30});
           }},
      {.op = "reshape",
       .config = "between_ops",
       .operands = {{Shape{4, 6}}},
       .trace =
           [](auto v) {
             return square(reshape(tanh(v[0]), Shape{3, 2, 4}));
           },
       .reference =
           [](auto in) {
             return reshaped(each(in[0], [](double x) { return std::tanh(x) * std::tanh(x); }), Shape{3, 2, 4});
           }},
      {.op = "sum",
       .config = "sum",
       .operands = {{Shape{3, 5, 2}}},
       .trace = [](auto v) { return sum(v[0]); },
       .reference = [](auto in) { return total(in[0], 1); }},
      {.op = "sum",
       .config = "mean",
       .operands = {{Shape{3, 7}}},
       .trace = [](auto v) { return mean(v[0]); },
       .reference = [](auto in) { return total(in[0], 1.0 / 21); }},
      {.op = "expand",
       .config = "scalar_to_matrix",
       .operands = {{Shape{}}},
       .trace =
           [](auto v) {
             return apply_op(std::make_shared<ExpandOp>(Shape{3, 5}, 0.5), {v[0]});
           },
       .reference =
           [](auto in) {
             Array y(Shape{3, 5});
             for (double& v : y.values) v = 0.5 * in[0][0];
             return y;
           }},
  };
}

}  // namespace lockstep::optest

#include <algorithm>
#include <cmath>

#include "lockstep/core/random.h"
#include "lockstep/ops/dropout.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"
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
      {.op = "sum_to",
       .config = "rows",
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

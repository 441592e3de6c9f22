// gradient() inside a model: what it refuses, and a gradient penalty by hand.
#include "lockstep/ops/gradient.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "lockstep/core/error.h"
#include "lockstep/ops/cross_entropy.h"
#include "lockstep/ops/linear.h"
#include "lockstep/ops/pair_products.h"
#include "lockstep/ops/permute.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/pool.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/softmax.h"
#include "lockstep/plan/compiled_model.h"

namespace lockstep {
namespace {

constexpr plan::ParameterStoreOptions kF64{.dtype = DType::F64};

Parameter constant_parameter(Shape shape, double value) {
  return {.shape = std::move(shape),
          .initialize = [value](const Shape&, std::span<double> to, RandomStream&) { std::ranges::fill(to, value); }};
}

// D(x) = tanh(w x), one weight: the penalty (|dD/dx| - 1)^2 and its gradient in closed form.
TEST(Gradient, PenaltyOfACritic) {
  Parameter weight = constant_parameter({1, 1}, 0.7);
  plan::CompiledModel model(
      {{"w", &weight}},
      [&](const plan::Inputs& in) {
        const Value x = in["x"];
        const Value slope = gradient(tanh(linear(x, x.graph().parameter(weight))), x);
        return plan::Traced{.loss = mean(square(abs(slope) - 1.0)), .prediction = slope};
      },
      kF64);
  plan::Plan& plan = model.plan(Mode::Train, {{"x", {Shape{1, 1}, DType::F64}}});
  const double x = 0.4, w = 0.7;
  *static_cast<double*>(plan.input("x")) = x;
  plan.run();
  const double t = std::tanh(w * x), sech2 = 1 - t * t, slope = w * sech2;
  EXPECT_NEAR(plan.prediction().data<double>()[0], slope, 1e-15);
  EXPECT_NEAR(plan.loss(), (slope - 1) * (slope - 1), 1e-15);
  const double by_weight = 2 * (slope - 1) * (sech2 - 2 * w * x * t * sech2);
  EXPECT_NEAR(model.parameters().read_gradient("w").data<double>()[0], by_weight, 1e-14);
}

TEST(Gradient, ThirdDerivatives) {
  Parameter p = constant_parameter({3}, 0.3);
  plan::CompiledModel model(
      {{"p", &p}},
      [&](const plan::Inputs& in) {
        const Value x = in.graph().parameter(p);
        const Value second = gradient(gradient(sin(x), x), x);
        return plan::Traced{.loss = {sum(second), fill(in.graph(), {Shape{}, DType::F64}, 1)}};
      },
      kF64);
  plan::Plan& plan = model.plan(Mode::Train, {{"x", {Shape{1}, DType::F64}}});
  plan.run();
  EXPECT_NEAR(plan.loss(), -3 * std::sin(0.3), 1e-15);
  const Tensor by_p = model.parameters().read_gradient("p");
  for (const double g : by_p.data<double>()) EXPECT_NEAR(g, -std::cos(0.3), 1e-15);
}

// The values of f(x), where x is a field of the batch.
template <class T = float>
std::vector<T> values_of(const Shape& shape, const std::vector<T>& x, const std::function<Value(Value)>& f) {
  Parameter p = constant_parameter({1}, 0);
  plan::CompiledModel model({{"p", &p}},
                            [&](const plan::Inputs& in) {
                              const Value y = f(in["x"]);
                              return plan::Traced{.loss = sum(y) * sum(in.graph().parameter(p)), .prediction = y};
                            },
                            {.dtype = dtype_of<T>});
  plan::Plan& plan = model.plan(Mode::Train, {{"x", {shape, dtype_of<T>}}});
  std::ranges::copy(x, static_cast<T*>(plan.input("x")));
  plan.run();
  const Tensor y = plan.prediction();
  return {y.data<T>().begin(), y.data<T>().end()};
}

// As PyTorch's: 0 and not NaN, where a power is constant.
// Permuting back does not go around the permuted value.
TEST(Gradient, ByAValueThatWasPermuted) {
  plan::CompiledModel model(
      {},
      [](const plan::Inputs& in) {
        const Value p = transpose(in["x"], 0, 1);
        return plan::Traced{.prediction = gradient(sum(square(p)) + sum(square(transpose(p, 0, 1))), p)};
      },
      kF64);
  plan::Plan& plan = model.plan(Mode::Eval, {{"x", {Shape{2, 3}, DType::F64}}});
  for (int i = 0; i < 6; ++i) static_cast<double*>(plan.input("x"))[i] = i;
  plan.run();
  for (int i = 0; i < 6; ++i) EXPECT_EQ(plan.prediction().data<double>()[i], 4.0 * (i % 2 * 3 + i / 2));
}

TEST(Gradient, OfAPowerAtZero) {
  const std::vector<float> x{0, 0, 2};
  const auto by_exponent = [](Value v) { return gradient(power(detach(v), v + 0.5), v); };
  const auto third = [](Value v) { return gradient(gradient(gradient(power(v, 2.0), v), v), v); };
  EXPECT_EQ(values_of({3}, {0, 0, 0}, by_exponent), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(values_of({3}, x, third), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(values_of({3}, x, [](Value v) { return gradient(gradient(power(v, 1.0), v), v); }),
            (std::vector<float>{0, 0, 0}));
}

TEST(Gradient, PassesNoDetachedValue) {
  EXPECT_EQ(values_of({2}, {3, -4}, [](Value v) { return gradient(v * detach(v), v); }), (std::vector<float>{3, -4}));
  EXPECT_EQ(values_of({2}, {3, -4}, [](Value v) { return detach(v) * 2.0; }), (std::vector<float>{6, -8}));
}

// The gradient of a gradient has terms of the size |h| |x|, which a difference of terms of the size |x|^2 would lose.
TEST(Gradient, OfPairProductsKeepsSmallGradients) {
  const auto penalty = [](Value v) {
    const Value x = reshape(v, Shape{1, 3, 2});
    const Value slope = gradient(sum(square(pair_products(x))), x);
    return gradient(sum(slope * slope) * 1e-8, v);
  };
  const std::vector<double> exact = values_of<double>({6}, {1, 2, 3, 4, 5, 6}, penalty);
  const std::vector<float> found = values_of({6}, {1, 2, 3, 4, 5, 6}, penalty);
  for (std::size_t i = 0; i < exact.size(); ++i) EXPECT_NEAR(found[i], exact[i], 1e-5 * std::abs(exact[i]));
}

TEST(LogSoftmax, KeepsTheDigitsOfLargeLogits) {
  const std::vector<float> y = values_of({2, 2}, {2e4F, 2e4F, 1e8F, 1e8F}, [](Value v) { return log_softmax(v, 1); });
  for (const float value : y) EXPECT_NEAR(value, -std::log(2.0), 1e-7);
}

// Parts of a long row are summed with shifts of their own, which infinity has none of.
TEST(LogSumExp, OfInfinityIsInfinityInAnyPart) {
  for (const std::size_t at : {0U, 1500U, 4095U}) {
    std::vector<float> x(4096, 1000.0F);
    x[at] = std::numeric_limits<float>::infinity();
    const std::vector<float> y = values_of({1, 4096}, x, [](Value v) { return logsumexp(v, {1}); });
    EXPECT_EQ(y[0], std::numeric_limits<float>::infinity()) << at;
  }
}

std::string error_of(const std::function<Value(const plan::Inputs&)>& trace) {
  Parameter p = constant_parameter({1, 1, 4, 4}, 0.3);
  plan::CompiledModel model(
      {{"p", &p}},
      [&](const plan::Inputs& in) { return plan::Traced{.loss = sum(trace(in) * in.graph().parameter(p))}; }, kF64);
  try {
    model.plan(Mode::Train, {{"x", {Shape{1, 1, 4, 4}, DType::F64}}});
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Gradient, OfAValueThatDoesNotDependOnTheOtherNamesBoth) {
  const auto by_another = [](const plan::Inputs& in) {
    const Graph::Scope scope(in.graph(), "energy");
    return gradient(exp(in["x"]), square(in["x"]));
  };
  EXPECT_EQ(error_of(by_another),
            "[gradient] energy: the value, the output of pointwise (exp) in energy, does not depend on input 0, the "
            "output of pointwise (square) in energy; expected a Value from which the first one was computed (the same "
            "op, applied again, makes another Value)");
}

// C++ leaves it to the compiler which operand of a sum is computed first, and f32 sums of three numbers have an order.
TEST(Gradient, DoesNotDependOnTheOrderInWhichOperandsAreComputed) {
  const auto slope_of = [](bool last_first) {
    return values_of({1}, {1.0F}, [last_first](Value x) {
      std::array<Value, 3> parts;
      for (std::size_t k = 0; k < parts.size(); ++k) {
        const std::size_t i = last_first ? parts.size() - 1 - k : k;
        parts[i] = square(x) * std::array{1e8, -1e8, 1.0}[i];
      }
      return gradient(parts[0] + parts[1] + parts[2], x);
    });
  };
  EXPECT_EQ(slope_of(false), slope_of(true));
}

TEST(Gradient, ByWhatIsNoValueOfTheGraphNamesIt) {
  EXPECT_EQ(error_of([](const plan::Inputs& in) { return gradient(exp(in["x"]), Value()); }),
            "[gradient] (model): input 0 is an empty Value, expected one of the value's graph");
  EXPECT_EQ(error_of([](const plan::Inputs& in) {
              Graph other(Mode::Train, DType::F64);
              const Value far = other.input("x", {Shape{2}, DType::F64});
              return gradients(exp(in["x"]), std::vector<Value>{in["x"], far})[0];
            }),
            "[gradient] (model): input 1 is a Value of another graph, expected one of the value's graph");
}

TEST(Gradient, OfAGradientThatHasNoneNamesModuleAndRemedy) {
  const auto pooled_again = [](const plan::Inputs& in) {
    const Graph::Scope scope(in.graph(), "features.pool");
    return gradient(gradient(max_pool2d(square(in["x"]), {}), in["x"]), in["x"]);
  };
  EXPECT_EQ(error_of(pooled_again),
            "[max_pool2d_gradient] features.pool: this op has no gradient, and the loss or a gradient() depends on it: "
            "max_pool2d can be differentiated once; average_pool2d any number of times");
  const auto entropy_again = [](const plan::Inputs& in) {
    const Value x = reshape(in["x"], Shape{4, 4});
    const Value label = in.graph().input("label", {Shape{4}, DType::I32});
    const Value slope = gradient(cross_entropy(x, label).mean, x);
    return reshape(gradient(slope, x), Shape{1, 1, 4, 4});
  };
  EXPECT_EQ(error_of(entropy_again),
            "[cross_entropy_gradient] (model): this op has no gradient, and the loss or a gradient() depends on it: "
            "cross_entropy can be differentiated once; the log of a softmax any number of times");
}

}  // namespace
}  // namespace lockstep

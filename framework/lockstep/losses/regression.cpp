#include "lockstep/losses/regression.h"

#include <numbers>

#include "lockstep/core/error.h"
#include "lockstep/core/math.h"
#include "lockstep/losses/pieces.h"
#include "lockstep/ops/loss_weights.h"
#include "lockstep/ops/pointwise.h"

namespace lockstep {
namespace {

// Below the root of this number a norm counts as this root, where the gradient of the norm is 0 and not infinite.
constexpr double kSmallestSquare = 1e-37;

// p - t; a masked element is 0 - p, whatever its target is, and its weight is 0.
Value residual(std::string_view loss, Value prediction, Value target, const LossWeights& weights) {
  require_equal_shapes(loss, prediction, target);
  return prediction - masked(loss, target, weights.mask);
}

// d^2 / 2 * steepness where |x| is at most `width`, and its tangent elsewhere. A choice by select() keeps the second
// derivative at 0, which a product with the sign of x would lose.
Value quadratic_then_linear(Value x, double width, double steepness) {
  pointwise::Expression expression;
  const pointwise::Scalar d = expression.input(0), size = pointwise::apply("abs", {d});
  const pointwise::Scalar near = (0.5 * steepness) * (d * d), far = (steepness * width) * (size - 0.5 * width);
  expression.set_result(pointwise::apply("select", {size - width, far, near}));
  return pointwise_value(expression, std::span(&x, 1));
}

// The root of the sum of squares of each sample, (samples, ...) to (samples); `counted` weighs the squares, if any.
Value norms(Value x, Value counted) {
  const Value squares = counted ? square(x) * counted : square(x);
  return sqrt(floored_at(sum_behind(squares, 1), kSmallestSquare));
}

}  // namespace

Loss l1_loss(Value prediction, Value target, const LossWeights& weights) {
  return weighted_mean("l1_loss", abs(residual("l1_loss", prediction, target, weights)), weights);
}

Loss mean_squared_error(Value prediction, Value target, const LossWeights& weights) {
  const std::string_view name = "mean_squared_error";
  return weighted_mean(name, square(residual(name, prediction, target, weights)), weights);
}

Loss huber_loss(Value prediction, Value target, HuberOptions options, const LossWeights& weights) {
  const std::string_view name = "huber_loss";
  check(options.delta > 0, name, "delta is {}, expected more than 0", options.delta);
  const Value d = residual(name, prediction, target, weights);
  return weighted_mean(name, quadratic_then_linear(d, options.delta, 1), weights);
}

Loss smooth_l1_loss(Value prediction, Value target, SmoothL1Options options, const LossWeights& weights) {
  const std::string_view name = "smooth_l1_loss";
  check(options.beta >= 0, name, "beta is {}, expected 0 or more", options.beta);
  const Value d = residual(name, prediction, target, weights);
  const Value each = options.beta == 0 ? abs(d) : quadratic_then_linear(d, options.beta, 1 / options.beta);
  return weighted_mean(name, each, weights);
}

Loss relative_l2_loss(Value prediction, Value target, RelativeL2Options options, const LossWeights& weights) {
  const std::string_view name = "relative_l2_loss";
  check(options.epsilon >= 0, name, "epsilon is {}, expected 0 or more", options.epsilon);
  require_equal_shapes(name, prediction, target);
  const Value wanted = masked(name, target, weights.mask);
  const Value counted = element_weights(name, {.mask = weights.mask}, prediction.type());
  const Value relative = norms(prediction - wanted, counted) / (norms(wanted, counted) + options.epsilon);
  return weighted_mean(name, relative, {.sample = weights.sample});
}

Loss gaussian_nll_loss(Value prediction, Value target, Value variance, GaussianNllOptions options,
                       const LossWeights& weights) {
  const std::string_view name = "gaussian_nll_loss";
  check(options.epsilon > 0, name, "epsilon is {}, expected more than 0", options.epsilon);
  const Value d = residual(name, prediction, target, weights);
  const std::vector<Type> both{prediction.type(), {variance.shape(), prediction.dtype()}};
  check(broadcast_shape(name, "variance", both) == prediction.shape(), name,
        "the variance is {}, expected a shape that broadcasts to {}", variance.type().str(), prediction.shape().str());
  const Value v = floored_at(variance, options.epsilon);
  const double constant = options.full ? 0.5 * math::log(2 * std::numbers::pi) : 0;
  return weighted_mean(name, scale_shift(log(v) + square(d) / v, 0.5, constant), weights);
}

}  // namespace lockstep

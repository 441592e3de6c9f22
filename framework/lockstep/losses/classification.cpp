#include "lockstep/losses/classification.h"

#include "lockstep/core/error.h"
#include "lockstep/losses/pieces.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/loss_weights.h"
#include "lockstep/ops/one_hot.h"
#include "lockstep/ops/pointwise.h"

namespace lockstep {
namespace {

constexpr double kSmallestProbability = 1e-37;  // the logarithm and powers of smaller ones are taken of this

// x^gamma for a probability x; the common exponents need no logarithm.
Value power_of(Value x, double gamma) {
  if (gamma == 1) return x;
  if (gamma == 2) return square(x);
  return power(floored_at(x, kSmallestProbability), gamma);
}

}  // namespace

Loss binary_cross_entropy_with_logits(Value logits, Value target, const BinaryCrossEntropyOptions& options,
                                      const LossWeights& weights) {
  const std::string_view name = "binary_cross_entropy_with_logits";
  require_equal_shapes(name, logits, target);
  check(options.pos_weight >= 0, name, "pos_weight is {}, expected 0 or more", options.pos_weight);
  const Value t = masked(name, target, weights.mask);
  Value positive = t * log_sigmoid(logits);
  if (options.pos_weights) {
    const std::vector<Type> both{logits.type(), {options.pos_weights.shape(), logits.dtype()}};
    check(broadcast_shape(name, "pos_weights", both) == logits.shape(), name,
          "pos_weights are {}, expected a shape that broadcasts to {}", options.pos_weights.type().str(),
          logits.shape().str());
    positive = positive * options.pos_weights;
  } else if (options.pos_weight != 1) {
    positive = positive * options.pos_weight;
  }
  return weighted_mean(name, -(positive + (1 - t) * log_sigmoid(-logits)), weights);
}

Loss sigmoid_focal_loss(Value logits, Value target, FocalOptions options, const LossWeights& weights) {
  const std::string_view name = "sigmoid_focal_loss";
  require_equal_shapes(name, logits, target);
  check(options.alpha <= 1, name, "alpha is {}, expected 0 to 1, or a negative number for none", options.alpha);
  check(options.gamma >= 0, name, "gamma is {}, expected 0 or more", options.gamma);
  const Value t = masked(name, target, weights.mask), other = 1 - t;
  Value each = -(t * log_sigmoid(logits) + other * log_sigmoid(-logits));
  // 1 - q without a difference of nearly equal numbers: a sure and right answer has a small one.
  const Value missing = t * sigmoid(-logits) + other * sigmoid(logits);
  if (options.gamma > 0) each = each * power_of(missing, options.gamma);
  if (options.alpha >= 0) each = each * scale_shift(t, 2 * options.alpha - 1, 1 - options.alpha);
  return weighted_mean(name, each, weights);
}

Loss kl_div(Value log_prediction, Value target, KlDivOptions options, const LossWeights& weights) {
  const std::string_view name = "kl_div";
  require_equal_shapes(name, log_prediction, target);
  const Value t = masked(name, target, weights.mask);
  // A target of 0 adds 0: the logarithm beside it is finite.
  Value each = options.log_target ? exp(t) * (t - log_prediction)
                                  : t * (log(floored_at(t, kSmallestProbability)) - log_prediction);
  if (const Value counted = element_weights(name, {.mask = weights.mask}, each.type())) each = each * counted;
  return weighted_mean(name, sum_behind(each, 1), {.sample = weights.sample});
}

Loss dice_loss(Value probabilities, Value target, DiceOptions options, const LossWeights& weights) {
  const std::string_view name = "dice_loss";
  check(probabilities.shape().rank() >= 2, name, "the probabilities are {}, expected (samples, channels, ...)",
        probabilities.type().str());
  check(options.smooth >= 0, name, "smooth is {}, expected 0 or more", options.smooth);
  Value channels = target, mask = weights.mask;
  if (target.dtype() == DType::I32) {
    const std::int64_t classes = probabilities.shape()[1];  // a copy: nodes move the graph's types
    channels = one_hot_channels(target, classes, sum_type(probabilities.dtype()), options.ignore_index);
    Shape positions = channels.shape();
    positions[1] = 1;
    const Value valid = sum_to(channels, positions);  // 0 where the index is the ignored one
    mask = mask ? mask * valid : valid;
  }
  require_equal_shapes(name, probabilities, channels);
  const Value t = masked(name, channels, mask);
  const Value counted = element_weights(name, {.mask = mask}, probabilities.type());
  const auto total = [&](Value x) { return sum_behind(counted ? x * counted : x, 2); };  // (samples, channels)
  const Value both = total(probabilities * t);
  const Value sizes = options.squared ? total(square(probabilities) + square(t)) : total(probabilities + t);
  const Value dice = scale_shift(both, 2, options.smooth) / (sizes + options.smooth);
  return weighted_mean(name, 1 - dice, {.sample = weights.sample});
}

Loss cosine_embedding_loss(Value a, Value b, Value target, CosineEmbeddingOptions options, const LossWeights& weights) {
  const std::string_view name = "cosine_embedding_loss";
  constexpr double kEpsilon = 1e-12;  // PyTorch's; added to both squares
  require_equal_shapes(name, a, b);
  check(options.margin >= -1 && options.margin <= 1, name, "margin is {}, expected -1 to 1", options.margin);
  check(target.shape() == Shape{a.shape()[0]}, name,
        "the target is {}, expected one number, 1 or -1, for each of {} samples", target.type().str(), a.shape()[0]);
  const Value squares = (sum_behind(square(a), 1) + kEpsilon) * (sum_behind(square(b), 1) + kEpsilon);
  const Value cosine = sum_behind(a * b, 1) / sqrt(squares);
  const Value apart = relu(cosine - options.margin);
  return weighted_mean(name, apply_pointwise("select", {masked(name, target, weights.mask), 1 - cosine, apart}),
                       weights);
}

}  // namespace lockstep

#include <algorithm>
#include <cmath>

#include "lockstep/losses/classification.h"
#include "lockstep/ops/pointwise.h"
#include "tests/ops/row.h"

namespace lockstep::optest {
namespace {

const Shape kShape{3, 2, 4};
const Operand kTarget{kShape, 0, 1};

// The weights of the rows below: in[2] per sample, times the mask in[3] (2, 1), which is 0 where the operand is
// negative.
LossWeights weights_of(std::span<const Value> v) { return {.sample = v[2], .mask = relu(v[3])}; }
double mask_at(std::span<const Array> in, std::int64_t i) { return std::max(in[3][i / 4 % 2], 0.0); }

Row weighted(std::string op, std::string config, Operand prediction, std::function<Loss(std::span<const Value>)> loss,
             std::function<Array(std::span<const Array>)> reference) {
  return {.op = std::move(op),
          .config = std::move(config),
          .operands = {std::move(prediction), kTarget, {Shape{3}, 0.5, 2}, {Shape{2, 1}}},
          .trace = [=](auto v) -> Value { return loss(v); },
          .reference = std::move(reference),
          .constant = {false, false, true, true}};
}

// The weighted mean over elements of f(z, t), with an index that tells the channel.
template <class F>
std::function<Array(std::span<const Array>)> mean_of(F f) {
  return [f](std::span<const Array> in) {
    Array y(Shape{});
    double total = 0;
    for (std::int64_t i = 0; i < kShape.elements(); ++i) {
      const double w = in[2][i / 8] * mask_at(in, i);
      y[0] += w * f(in[0][i], in[1][i]);
      total += w;
    }
    y[0] /= total;
    return y;
  };
}

// The weighted mean over samples, or over samples and channels, of parts of `size` elements: f(first, end) is the loss
// of one part.
template <class F>
Array mean_of_parts(std::span<const Array> in, std::int64_t size, F f) {
  Array y(Shape{});
  double total = 0;
  for (std::int64_t first = 0; first < kShape.elements(); first += size) {
    y[0] += in[2][first / 8] * f(first, first + size);
    total += in[2][first / 8];
  }
  y[0] /= total;
  return y;
}

double binary(double z, double t, double positive) {
  return positive * t * std::log1p(std::exp(-z)) + (1 - t) * std::log1p(std::exp(z));
}

double focal(double z, double t, double alpha, double gamma) {
  const double p = 1 / (1 + std::exp(-z)), right = p * t + (1 - p) * (1 - t);
  return (alpha * t + (1 - alpha) * (1 - t)) * std::pow(1 - right, gamma) * binary(z, t, 1);
}

Row kl_row(std::string config, bool log_target) {
  return weighted(
      "sum", std::move(config), {kShape, -4, -0.1},
      [=](auto v) {
        const Value target = log_target ? log(v[1]) : v[1];
        return kl_div(v[0], target, {.log_target = log_target}, weights_of(v));
      },
      [=](auto in) {
        return mean_of_parts(in, 8, [&](std::int64_t first, std::int64_t end) {
          double sum = 0;
          for (std::int64_t i = first; i < end; ++i) {
            const double m = mask_at(in, i);
            if (m > 0) sum += m * in[1][i] * (std::log(in[1][i]) - in[0][i]);
          }
          return sum;
        });
      });
}

Row dice_row(std::string config, DiceOptions options) {
  return weighted(
      "sum", std::move(config), {kShape, 0, 1}, [=](auto v) { return dice_loss(v[0], v[1], options, weights_of(v)); },
      [=](auto in) {
        return mean_of_parts(in, 4, [&](std::int64_t first, std::int64_t end) {
          double both = 0, sizes = 0;
          for (std::int64_t i = first; i < end; ++i) {
            const double p = in[0][i], t = in[1][i];
            both += mask_at(in, i) * p * t;
            sizes += mask_at(in, i) * (options.squared ? p * p + t * t : p + t);
          }
          return 1 - (2 * both + options.smooth) / (sizes + options.smooth);
        });
      });
}

Array cosine_embedding_of(std::span<const Array> in, double margin) {
  Array y(Shape{});
  double total = 0;
  for (std::int64_t n = 0; n < 4; ++n) {
    double ab = 0, aa = 1e-12, bb = 1e-12;
    for (std::int64_t i = 0; i < 5; ++i) {
      ab += in[0].at(n, i) * in[1].at(n, i);
      aa += std::pow(in[0].at(n, i), 2);
      bb += std::pow(in[1].at(n, i), 2);
    }
    const double cosine = ab / std::sqrt(aa * bb);
    y[0] += in[3][n] * (in[2][n] > 0 ? 1 - cosine : std::max(0.0, cosine - margin));
    total += in[3][n];
  }
  y[0] /= total;
  return y;
}

}  // namespace

std::vector<Row> classification_loss_rows() {
  const Operand logits{kShape, -4, 4};
  return {
      weighted(
          "pointwise", "binary_cross_entropy", logits,
          [](auto v) { return binary_cross_entropy_with_logits(v[0], v[1], {}, weights_of(v)); },
          mean_of([](double z, double t) { return binary(z, t, 1); })),
      weighted(
          "pointwise", "binary_cross_entropy_pos_weight", logits,
          [](auto v) { return binary_cross_entropy_with_logits(v[0], v[1], {.pos_weight = 2.5}, weights_of(v)); },
          mean_of([](double z, double t) { return binary(z, t, 2.5); })),
      {.op = "pointwise",
       .config = "binary_cross_entropy_pos_weights",
       .operands = {logits, kTarget, {Shape{2, 1}, 0.5, 3}},
       .trace = [](auto v) -> Value { return binary_cross_entropy_with_logits(v[0], v[1], {.pos_weights = v[2]}); },
       .reference =
           [](auto in) {
             Array y(Shape{});
             for (std::int64_t i = 0; i < 24; ++i) y[0] += binary(in[0][i], in[1][i], in[2][i / 4 % 2]) / 24;
             return y;
           },
       .constant = {false, false, true}},
      weighted(
          "pointwise", "focal", logits, [](auto v) { return sigmoid_focal_loss(v[0], v[1], {}, weights_of(v)); },
          mean_of([](double z, double t) { return focal(z, t, 0.25, 2); })),
      weighted(
          "pointwise", "focal_other_exponent", logits,
          [](auto v) { return sigmoid_focal_loss(v[0], v[1], {.alpha = 0.6, .gamma = 1.5}, weights_of(v)); },
          mean_of([](double z, double t) { return focal(z, t, 0.6, 1.5); })),
      weighted(
          "pointwise", "focal_without_alpha", logits,
          [](auto v) { return sigmoid_focal_loss(v[0], v[1], {.alpha = -1, .gamma = 1}, weights_of(v)); },
          mean_of([](double z, double t) { return 2 * focal(z, t, 0.5, 1); })),
      kl_row("kl_div", false),
      kl_row("kl_div_log_target", true),
      dice_row("dice", {}),
      dice_row("dice_squared", {.squared = true, .smooth = 1}),
      {.op = "sum",
       .config = "cosine_embedding",
       .operands = {{Shape{4, 5}}, {Shape{4, 5}, -2, 2}, {Shape{4}}, {Shape{4}, 0.5, 2}},
       .trace = [](auto v) -> Value {
         return cosine_embedding_loss(v[0], v[1], v[2], {.margin = -0.3}, {.sample = v[3]});
       },
       .reference = [](auto in) { return cosine_embedding_of(in, -0.3); },
       .constant = {false, false, true, true}},
  };
}

}  // namespace lockstep::optest

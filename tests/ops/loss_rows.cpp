#include <algorithm>
#include <cmath>

#include "lockstep/ops/cross_entropy.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/softmax.h"
#include "tests/ops/row.h"

namespace lockstep::optest {
namespace {

// Targets and weights of positions (N, S) of logits (N, C, S); no weights: ones.
struct Positions {
  std::vector<std::int32_t> targets = {};
  std::vector<double> soft = {};  // in place of targets: probabilities of the logits' shape
  std::vector<double> weights = {};
};

// The mean as PyTorch defines it: for classes y sum over positions of s ((1-e) w_y (-log p_y) + e/C sum_c w_c (-log
// p_c)), divided by the sum of s w_y; for probabilities t sum of s sum_c w_c ((1-e) t_c + e/C) (-log p_c), divided by
// the sum of s.
Array cross_entropy_of(const Array& logits, const Positions& at, const CrossEntropyOptions& o) {
  const std::int64_t classes = logits.shape[1], positions = logits.shape.tail().tail().elements();
  const auto weight = [&](std::int64_t c) {
    return o.class_weights.empty() ? 1 : o.class_weights[static_cast<std::size_t>(c)];
  };
  double loss = 0, weights = 0;
  for (std::int64_t i = 0; i < logits.shape[0] * positions; ++i) {
    const std::int64_t first = i / positions * classes * positions + i % positions;
    const auto z = [&](std::int64_t c) { return logits[first + c * positions]; };
    double partition = 0, smooth = 0;
    for (std::int64_t c = 0; c < classes; ++c) partition += std::exp(z(c));
    const auto surprise = [&](std::int64_t c) { return weight(c) * (std::log(partition) - z(c)); };
    for (std::int64_t c = 0; c < classes; ++c) smooth += o.label_smoothing / static_cast<double>(classes) * surprise(c);
    const double own = at.weights.empty() ? 1 : at.weights[static_cast<std::size_t>(i)];
    if (at.targets.empty()) {
      for (std::int64_t c = 0; c < classes; ++c)
        smooth += (1 - o.label_smoothing) * at.soft[static_cast<std::size_t>(first + c * positions)] * surprise(c);
      loss += own * smooth;
      weights += own;
    } else if (const std::int64_t y = at.targets[static_cast<std::size_t>(i)]; y != o.ignore_index) {
      loss += own * ((1 - o.label_smoothing) * surprise(y) + smooth);
      weights += own * weight(y);
    }
  }
  Array result(Shape{});
  result[0] = loss / weights;
  return result;
}

Row row(std::string config, std::int64_t classes, std::vector<std::int32_t> targets, CrossEntropyOptions options) {
  return {.op = "cross_entropy",
          .config = std::move(config),
          .operands = {{Shape{static_cast<std::int64_t>(targets.size()), classes}, -3, 3}},
          .trace =
              [=](auto v) {
                return cross_entropy(v[0], v[0].graph().input("target", {Shape{v[0].shape()[0]}, DType::I32}), options)
                    .mean;
              },
          .reference = [=](auto in) { return cross_entropy_of(in[0], {.targets = targets}, options); },
          .targets = targets};
}

Shape without_classes(const Shape& logits) {
  std::vector<std::int64_t> dims = logits.dims();
  dims.erase(dims.begin() + 1);
  return Shape(std::move(dims));
}

// Classes of positions, whose weights are a factor per sample times a mask with zeros.
Row pixel_row(std::string config, Shape logits, std::vector<std::int32_t> targets, CrossEntropyOptions options) {
  const Shape positions = without_classes(logits);
  return {.op = "cross_entropy",
          .config = std::move(config),
          .operands = {{logits, -3, 3}, {Shape{logits[0]}, 0.5, 2}, {positions.tail(), -0.5, 1}},
          .trace =
              [=](auto v) {
                const std::int64_t n = positions.elements();
                const Value target = reshape(v[0].graph().input("target", {Shape{n}, DType::I32}), positions);
                return cross_entropy(v[0], target, options, {.sample = v[1], .mask = relu(v[2])}).mean;
              },
          .reference =
              [=](auto in) {
                std::vector<double> weights;
                for (std::int64_t n = 0; n < logits[0]; ++n) {
                  for (const double m : in[2].values) weights.push_back(in[1][n] * std::max(m, 0.0));
                }
                return cross_entropy_of(in[0], {.targets = targets, .weights = weights}, options);
              },
          .targets = targets,
          .constant = {false, true, true}};
}

Row soft_row(std::string config, Shape logits, CrossEntropyOptions options) {
  return {.op = "cross_entropy",
          .config = std::move(config),
          .operands = {{logits, -3, 3}, {logits, 0, 1}, {Shape{logits[0]}, 0.5, 2}},
          .trace = [=](auto v) { return cross_entropy(v[0], v[1], options, {.sample = v[2]}).mean; },
          .reference =
              [=](auto in) {
                std::vector<double> weights;
                for (std::int64_t i = 0; i < without_classes(logits).elements(); ++i)
                  weights.push_back(in[2][i / logits.tail().tail().elements()]);
                return cross_entropy_of(in[0], {.soft = in[1].values, .weights = weights}, options);
              },
          .constant = {false, true, true}};
}

Row softmax_row(std::string config, Operand x) {
  return {.op = "softmax",
          .config = std::move(config),
          .operands = {std::move(x)},
          .trace = [](auto v) { return softmax(v[0]); },
          .reference =
              [](auto in) {
                Array y = in[0];
                for (std::int64_t n = 0; n < y.shape[0]; ++n) {
                  double total = 0;
                  for (std::int64_t c = 0; c < y.shape[1]; ++c) total += std::exp(y.at(n, c));
                  for (std::int64_t c = 0; c < y.shape[1]; ++c) y.at(n, c) = std::exp(y.at(n, c)) / total;
                }
                return y;
              }};
}

}  // namespace

std::vector<Row> loss_rows() {
  return {
      row("plain", 5, {0, 4, 2, 2}, {}),
      row("label_smoothing", 7, {6, 0, 3}, {.label_smoothing = 0.1}),
      row("class_weights", 3, {0, 1, 2, 1, 1}, {.class_weights = {0.5, 2, 1.25}}),
      row("class_without_weight", 3, {0, 1, 2}, {.class_weights = {0, 2, 1}}),
      row("smoothing_and_weights", 4, {3, 1, 0}, {.label_smoothing = 0.3, .class_weights = {1, 0.25, 3, 2}}),
      row("one_sample", 11, {10}, {}),
      row("ignored_by_default", 3, {2, -100, 0, 1}, {.label_smoothing = 0.2}),
      row("ignored_class", 3, {2, 1, 0, 1}, {.class_weights = {0.5, 2, 3}, .ignore_index = 1}),
      pixel_row("pixels", {2, 3, 2, 2}, {0, 2, 1, 1, 2, 2, 0, 1}, {}),
      pixel_row("ignored_pixels", {2, 3, 5}, {0, 2, 255, 1, 255, 2, 0, 1, 255, 0}, {.ignore_index = 255}),
      pixel_row("pixels_smoothing_and_weights", {2, 4, 1, 3}, {3, 0, 1, -100, 2, 2},
                {.label_smoothing = 0.3, .class_weights = {1, 0.25, 3, 2}}),
      pixel_row("rows_of_samples", {3, 4}, {1, 3, 0}, {.label_smoothing = 0.1}),
      soft_row("probabilities", {4, 5}, {}),
      soft_row("probabilities_of_pixels", {2, 3, 2, 2}, {.label_smoothing = 0.1, .class_weights = {0.5, 2, 1}}),
      softmax_row("few_classes", {{3, 5}, -3, 3}),
      softmax_row("many_classes", {{2, 35}, -3, 3}),
      softmax_row("one_class", {{4, 1}}),
  };
}

}  // namespace lockstep::optest

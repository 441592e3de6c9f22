#include <cmath>

#include "lockstep/ops/cross_entropy.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/softmax.h"
#include "tests/ops/row.h"

namespace lockstep::optest {
namespace {

// The mean as PyTorch defines it: sum over samples of (1-e) w_y (-log p_y) + e/C sum_c w_c (-log p_c), divided by the
// sum of w_y.
Array cross_entropy_of(const Array& logits, const std::vector<std::int32_t>& targets, const CrossEntropyOptions& o) {
  const std::int64_t classes = logits.shape[1];
  const auto weight = [&](std::int64_t c) {
    return o.class_weights.empty() ? 1 : o.class_weights[static_cast<std::size_t>(c)];
  };
  double loss = 0, weights = 0;
  for (std::int64_t n = 0; n < logits.shape[0]; ++n) {
    double partition = 0;
    for (std::int64_t c = 0; c < classes; ++c) partition += std::exp(logits.at(n, c));
    const std::int64_t y = targets[static_cast<std::size_t>(n)];
    const auto surprise = [&](std::int64_t c) { return weight(c) * (std::log(partition) - logits.at(n, c)); };
    loss += (1 - o.label_smoothing) * surprise(y);
    for (std::int64_t c = 0; c < classes; ++c) loss += o.label_smoothing / static_cast<double>(classes) * surprise(c);
    weights += weight(y);
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
          .reference = [=](auto in) { return cross_entropy_of(in[0], targets, options); },
          .targets = targets};
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
      softmax_row("few_classes", {{3, 5}, -3, 3}),
      softmax_row("many_classes", {{2, 35}, -3, 3}),
      softmax_row("one_class", {{4, 1}}),
      {.op = "pointwise",
       .config = "mean_squared_error",
       .operands = {{Shape{3, 5}}, {Shape{3, 5}, -2, 2}},
       .trace = [](auto v) { return mean_squared_error(v[0], v[1]); },
       .reference =
           [](auto in) {
             Array y(Shape{});
             for (std::size_t i = 0; i < 15; ++i) y[0] += std::pow(in[0].values[i] - in[1].values[i], 2) / 15;
             return y;
           }},
  };
}

}  // namespace lockstep::optest

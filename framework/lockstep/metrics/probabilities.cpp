#include "lockstep/metrics/probabilities.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/core/error.h"
#include "lockstep/graph/graph.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/concat.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"

namespace lockstep::metrics {
namespace {

struct Wide {
  Value logits, target;
};

Wide wide(std::string_view name, Value logits, Value target) {
  check(logits.shape() == target.shape() && logits.shape().rank() > 0, "metric",
        "{}: logits are {} and targets {}, expected equal shapes (samples, ...)", name, logits.type().str(),
        target.type().str());
  return {cast(logits, DType::F64), cast(target, DType::F64)};
}

}  // namespace

Metric log_loss(Value logits, Value target) {
  const auto [x, t] = wide("log_loss", logits, target);
  const double elements = static_cast<double>(logits.shape().tail().elements());
  return {.rule = {.name = "log_loss",
                   .finish = [elements](std::span<const double> sums, double samples,
                                        std::span<double> results) { results[0] = sums[0] / (samples * elements); },
                   .better = Better::Lower},
          .sums = {-sum(t * log_sigmoid(x) + (1 - t) * log_sigmoid(-x))}};
}

Metric calibration(Value logits, Value target) {
  const auto [x, t] = wide("calibration", logits, target);
  return {.rule = {.name = "calibration",
                   .finish =
                       [](std::span<const double> sums, double /*samples*/, std::span<double> results) {
                         results[0] = sums[1] > 0 ? sums[0] / sums[1] : std::numeric_limits<double>::quiet_NaN();
                       }},
          .sums = {sum(sigmoid(x)), sum(t)}};
}

Metric calibration_error(Value logits, Value target, std::int64_t bins) {
  check(bins >= 1 && bins <= 1000, "metric", "calibration_error: {} bins, expected 1 to 1000", bins);
  const auto [x, t] = wide("calibration_error", logits, target);
  const std::int64_t elements = logits.shape().elements();
  const Value p = reshape(sigmoid(x), Shape{elements}), y = reshape(t, Shape{elements});
  // The sum over samples of p - t of each bin: its size cancels out of the mean.
  std::vector<Value> differences;
  for (std::int64_t b = 0; b < bins; ++b) {
    const double low = static_cast<double>(b) / static_cast<double>(bins);
    const double high = static_cast<double>(b + 1) / static_cast<double>(bins);
    const Value in = b + 1 < bins ? greater_equal(p, low) * less(p, high) : greater_equal(p, low);
    differences.push_back(reshape(sum(in * (p - y)), Shape{1}));
  }
  const double of_sample = static_cast<double>(logits.shape().tail().elements());
  return {.rule = {.name = "calibration_error",
                   .finish =
                       [of_sample](std::span<const double> sums, double samples, std::span<double> results) {
                         double all = 0;
                         for (const double one : sums) all += std::abs(one);
                         results[0] = all / (samples * of_sample);
                       },
                   .better = Better::Lower,
                   .in_training = false},
          .sums = {concat(differences, 0)}};
}

}  // namespace lockstep::metrics

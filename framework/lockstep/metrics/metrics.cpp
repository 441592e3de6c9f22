#include "lockstep/metrics/metrics.h"

#include <cmath>
#include <limits>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/math.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/class_counts.h"
#include "lockstep/ops/cross_entropy.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"

namespace lockstep::metrics {
namespace {

double elements_of_sample(const Value& x) { return static_cast<double>(x.shape().tail().elements()); }

// Throws unless prediction and target have the same shape, with samples first; returns p - t.
Value difference(std::string_view metric, Value prediction, Value target) {
  check(prediction.shape() == target.shape() && target.shape().rank() > 0, "metric",
        "{}: the prediction is {} and the target {}, expected equal shapes (samples, ...)", metric,
        prediction.type().str(), target.type().str());
  return cast(prediction, DType::F64) - cast(target, DType::F64);
}

}  // namespace

Metric mean_of(std::string_view name, Value sum, Better better) {
  return {.rule = {.name = std::string(name),
                   .finish = [](std::span<const double> sums, double samples,
                                std::span<double> results) { results[0] = sums[0] / samples; },
                   .better = better},
          .sums = {sum}};
}

Metric accuracy(Value logits, Value label, std::optional<std::int32_t> ignore_index) {
  if (!ignore_index && label.dtype() == DType::I32 && logits.shape().rank() == 2) {
    Metric metric = mean_of("accuracy", count_correct(logits, label), Better::Higher);
    metric.rule.form = MetricForm::Percent;
    return metric;
  }
  Metric metric = mean_of("accuracy", class_counts(logits, label, ignore_index), Better::Higher);
  metric.rule.finish = [](std::span<const double> counts, double /*samples*/, std::span<double> results) {
    const std::size_t classes = counts.size() / 3;
    double right = 0, all = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      right += counts[c];
      all += counts[2 * classes + c];
    }
    results[0] = right / all;
  };
  metric.rule.form = MetricForm::Percent;
  return metric;
}

Metric top_k(Value logits, Value label, std::int64_t k) {
  Metric metric = mean_of(formatted("top{}", k), count_correct(logits, label, k), Better::Higher);
  metric.rule.form = MetricForm::Percent;
  return metric;
}

Metric mean_absolute_error(Value prediction, Value target, std::string_view name) {
  const double elements = elements_of_sample(target);
  Metric metric = mean_of(name, sum(abs(difference(name, prediction, target))), Better::Lower);
  metric.rule.finish = [elements](std::span<const double> sums, double samples, std::span<double> results) {
    results[0] = sums[0] / (samples * elements);
  };
  return metric;
}

Metric root_mean_squared_error(Value prediction, Value target, std::string_view name) {
  const double elements = elements_of_sample(target);
  Metric metric = mean_of(name, sum(square(difference(name, prediction, target))), Better::Lower);
  metric.rule.finish = [elements](std::span<const double> sums, double samples, std::span<double> results) {
    results[0] = std::sqrt(sums[0] / (samples * elements));
  };
  return metric;
}

Metric r_squared(Value prediction, Value target, std::string_view name) {
  const double elements = elements_of_sample(target);
  const Value t = cast(target, DType::F64);
  Metric metric = mean_of(name, sum(square(difference(name, prediction, target))), Better::Higher);
  metric.sums.push_back(sum(t));
  metric.sums.push_back(sum(square(t)));
  metric.rule.finish = [elements](std::span<const double> sums, double samples, std::span<double> results) {
    const double n = samples * elements, spread = sums[2] - sums[1] * sums[1] / n;
    // Of equal targets the difference is what rounding leaves of the two sums.
    const bool differ = spread > 1e-13 * sums[2];
    results[0] = differ ? 1 - sums[0] / spread : std::numeric_limits<double>::quiet_NaN();
  };
  return metric;
}

Metric channel_errors(Value prediction, Value target, std::string_view name) {
  check(target.shape().rank() >= 2, "metric", "{}: the target is {}, expected (samples, channels, ...)", name,
        target.type().str());
  const double elements = elements_of_sample(target) / static_cast<double>(target.shape()[1]);
  Metric metric = mean_of(name, channel_sum(square(difference(name, prediction, target))), Better::Lower);
  metric.rule.results = target.shape()[1];
  metric.rule.finish = [elements](std::span<const double> sums, double samples, std::span<double> results) {
    for (std::size_t c = 0; c < sums.size(); ++c) results[c] = std::sqrt(sums[c] / (samples * elements));
  };
  return metric;
}

Metric perplexity(const Loss& loss, Value logits, std::string_view name) {
  check(logits.shape().rank() > 0, "metric", "{}: the logits are a scalar, expected (samples, ...)", name);
  const double samples = static_cast<double>(logits.shape()[0]);
  const Value weight =
      loss.weight ? cast(loss.weight, DType::F64) : fill(logits.graph(), {Shape{}, DType::F64}, samples);
  Metric metric = mean_of(name, cast(loss.mean, DType::F64) * weight, Better::Lower);
  metric.sums.push_back(weight);
  metric.rule.finish = [](std::span<const double> sums, double /*samples*/, std::span<double> results) {
    results[0] = math::exp(sums[0] / sums[1]);
  };
  return metric;
}

}  // namespace lockstep::metrics

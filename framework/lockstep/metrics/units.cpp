#include "lockstep/metrics/units.h"

#include <cmath>
#include <numeric>
#include <span>

#include "lockstep/core/error.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/concat.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/slice.h"

namespace lockstep::metrics {
namespace {

constexpr std::string_view kSite = "metric";

// How the sums of one target become its error.
struct Part {
  std::vector<double> scale;  // of each sum
  double elements = 0;        // of a sample
};

// `numbers`, one or one per channel, as f64 that broadcasts over x.
Value over_axis(const std::vector<double>& numbers, const Value& x, int axis) {
  const Shape ones(std::vector<std::int64_t>(static_cast<std::size_t>(x.shape().rank()), 1));
  std::vector<Value> values;
  for (const double number : numbers) values.push_back(fill(x.graph(), {ones, DType::F64}, number));
  return values.size() == 1 ? values.front() : concat(values, axis);
}

// The channels of a target, before its logarithm where it has one; else still to be multiplied by its scale.
Value in_units(const Value& x, const TargetUnits& units, std::int64_t first, int axis) {
  const Value y = cast(slice(x, axis, first, units.channels), DType::F64);
  return units.logarithm ? exp(y * over_axis(units.scale, y, axis) + over_axis(units.shift, y, axis)) : y;
}

// The sums of x over all dimensions but that of channels; over all, if one number scales all channels.
Value sum_of(const Value& x, const TargetUnits& units, int axis) {
  if (units.logarithm || units.scale.size() == 1) return sum(x);
  std::vector<int> axes(static_cast<std::size_t>(x.shape().rank()));
  std::iota(axes.begin(), axes.end(), 0);
  axes.erase(axes.begin() + axis);
  return sum(x, axes);
}

void check_units(const Value& prediction, const Value& target, const std::vector<TargetUnits>& units, int axis) {
  check(prediction.shape() == target.shape() && axis > 0 && axis < target.shape().rank(), kSite,
        "the prediction is {} and the target {}, expected equal shapes (samples, ...) with channels in dimension {}",
        prediction.type().str(), target.type().str(), axis);
  std::int64_t channels = 0;
  for (const TargetUnits& one : units) {
    const auto fits = [&](const std::vector<double>& numbers) {
      return numbers.size() == 1 || std::ssize(numbers) == one.channels;
    };
    check(one.channels > 0 && fits(one.shift) && fits(one.scale), kSite,
          "'{}' has {} channels, {} shifts and {} scales, expected one of each, or one for each channel", one.name,
          one.channels, one.shift.size(), one.scale.size());
    channels += one.channels;
  }
  check(!units.empty() && channels == target.shape()[axis], kSite,
        "the units are those of {} channels, expected those of the target's {}", channels, target.shape()[axis]);
}

// The metric of these parts: root(sum of value(scale) * sums / elements).
Metric metric_of(const std::string& name, std::vector<Value> sums, std::vector<Part> parts, bool squared,
                 const std::vector<TargetUnits>& units) {
  Metric metric{.rule = {.name = name, .results = std::ssize(units), .better = Better::Lower, .in_training = false},
                .sums = std::move(sums)};
  if (units.size() > 1) {
    for (const TargetUnits& one : units) metric.rule.names.push_back(one.name);
  }
  metric.rule.finish = [parts = std::move(parts), squared](std::span<const double> values, double samples,
                                                           std::span<double> results) {
    std::size_t at = 0;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      double total = 0;
      for (const double scale : parts[p].scale) total += (squared ? scale * scale : scale) * values[at++];
      const double mean = total / (samples * parts[p].elements);
      results[p] = squared ? std::sqrt(mean) : mean;
    }
  };
  return metric;
}

}  // namespace

std::vector<Metric> errors_in_units(Value prediction, Value target, const std::vector<TargetUnits>& units, int axis) {
  check_units(prediction, target, units, axis);
  std::vector<Value> squares, absolutes;
  std::vector<Part> parts;
  const double elements = static_cast<double>(target.shape().tail().elements()) /
                          static_cast<double>(target.shape()[axis]);  // of a channel
  std::int64_t first = 0;
  for (const TargetUnits& one : units) {
    const Value error = in_units(prediction, one, first, axis) - in_units(target, one, first, axis);
    squares.push_back(sum_of(square(error), one, axis));
    absolutes.push_back(sum_of(abs(error), one, axis));
    parts.push_back({.scale = one.logarithm ? std::vector<double>{1} : one.scale,
                     .elements = elements * static_cast<double>(one.channels)});
    first += one.channels;
  }
  return {metric_of("rmse_in_units", std::move(squares), parts, true, units),
          metric_of("mae_in_units", std::move(absolutes), parts, false, units)};
}

}  // namespace lockstep::metrics

// Errors in the units of the targets' files, for models whose targets are normalised, y = (g(x) - shift) / scale with
// g(x) = x or log(x + offset) (lockstep/data/normalisation.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/graph/metric.h"

namespace lockstep::metrics {

// One target, or one column of a table: some neighbouring channels of the model's target.
struct TargetUnits {
  std::string name{};
  std::int64_t channels = 1;
  std::vector<double> shift{0}, scale{1};  // one number, or one for each channel
  bool logarithm = false;                  // g(x) = log(x + offset); the offset is in no difference
};

// "rmse_in_units" and "mae_in_units", the root mean squared and the mean absolute error over all elements of a target:
// one number for one target, else a list with the targets' names. Computed in evaluations alone. Prediction and target
// are (samples, ...), of equal shapes, and dimension `axis` counts channels, those of the units in their order. Throws
// Error for other shapes.
std::vector<Metric> errors_in_units(Value prediction, Value target, const std::vector<TargetUnits>& units, int axis);

}  // namespace lockstep::metrics

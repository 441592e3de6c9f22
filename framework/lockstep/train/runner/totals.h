// The result of a step or an evaluation over all ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lockstep/train/report/metric_result.h"

namespace lockstep::train {

// The outcome of a step.
enum class StepOutcome : std::uint8_t { Applied, Skipped, RolledBack };

// Loss (mean over all samples) and metrics of a step or an evaluation, equal on all ranks.
struct Totals {
  double loss = 0, weight = 0;  // weight: sum of the samples' weights; their number unless the loss has weights
  std::int64_t samples = 0;
  std::vector<MetricResult> metrics = {};  // in the order of plan::Traced::metrics
  bool whole = true;  // false: a request ended the evaluation early, and the totals are those of a part
  // Of a step, if it is asked for and known: the gradient noise scale in samples (McCandlish et al., "An empirical
  // model of large-batch training" (2018)), averaged over about the last 100 updates.
  std::optional<double> noise_scale = {};
  StepOutcome outcome = StepOutcome::Applied;  // RolledBack: the other members are not set; an earlier batch follows

  // Returns the result of a metric with one result; empty: the model has no such metric, or it was not computed.
  std::optional<double> metric(std::string_view name) const { return find_result(metrics, name); }
};

// This rank's part of a step: the sum of its samples' losses times their weights, the weights, and the samples.
struct OwnTotals {
  double loss_sum = 0, weight = 0;
  std::int64_t samples = 0;

  double loss() const { return weight > 0 ? loss_sum / weight : 0; }  // the mean
};

}  // namespace lockstep::train

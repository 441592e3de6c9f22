// The files that a run keeps, and the metrics by which its options compare checkpoints.
#pragma once

#include <span>
#include <string_view>

#include "lockstep/checkpoint/retention.h"
#include "lockstep/train/options/options.h"

namespace lockstep::train {

// Returns the files that --keep keeps, and which values are better for the metric that --keep names. Throws Error if
// the model has no such metric.
checkpoint::Retention retention(const Options& options, std::span<const MetricRule> metrics);
// Returns whether higher values of this metric, or of the loss, are better. Throws Error with the option's name if the
// model has no such metric.
bool is_higher_better(std::string_view option, std::string_view metric, std::span<const MetricRule> metrics);

}  // namespace lockstep::train

// Sums over the updates of an epoch so far, for the epoch's line and its record of metrics. Checkpoints contain them,
// so that a run resumed in the middle of an epoch ends it with the same means.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/train/report/metric_result.h"

namespace lockstep::train {

struct EpochSums {
  std::int64_t epoch = -1;  // from 0; -1: no epoch
  double loss = 0, weight = 0;
  std::int64_t samples = 0;
  std::vector<MetricResult> metrics = {};  // checkpoints contain the sums; the results follow from the metrics' rules
  // If set, the sums contain only the updates after this one, because a checkpoint had no sums of the earlier ones.
  std::optional<std::int64_t> after = {};

  double mean_loss() const { return weight > 0 ? loss / weight : 0; }
  // Puts the metrics in the order of these rules, without those that have none, and computes the results.
  void take_rules(std::span<const MetricRule> rules);
  // Adds the sums of a step, which has the metrics of these rules. Allocates no memory after the first step of an
  // epoch.
  void add_metrics(std::span<const MetricRule> rules, std::span<const MetricResult> step);
  // Returns "training loss 0.4512, accuracy 85.31%; "; empty without samples.
  std::string str() const;
};

// Writes sums as a checkpoint's metadata contain them, under kEpochSumsKey.
inline constexpr const char* kEpochSumsKey = "epoch_sums";
nlohmann::json to_json(const EpochSums& sums);
// Reads the sums of `metadata`; epoch is -1 if it has none. Throws Error with `file` if they are not as to_json()
// writes them.
EpochSums epoch_sums(const nlohmann::json& metadata, const std::string& file);

}  // namespace lockstep::train

// What a run remembers from step to step beside weights and its position in the data, kept in its checkpoints.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "lockstep/train/report/epoch_sums.h"

namespace lockstep::train {

struct EvaluationRecord {
  std::int64_t step = 0;
  double loss = 0, accuracy = 0;
};

struct RunRecord {
  EpochSums epoch;                             // of the epoch at hand
  std::optional<EvaluationRecord> evaluation;  // the last whole one
  bool evaluation_due = false;                 // of the epoch that ended, or of the run's end
};

// As a checkpoint's metadata hold it, under "evaluation"; null without one.
nlohmann::json to_json(const std::optional<EvaluationRecord>& evaluation);
// What `metadata` have of a record; an older program's have less. Throws Error that names `place` and the key where
// they are not what a run writes.
RunRecord run_record(const nlohmann::json& metadata, const std::string& place);

}  // namespace lockstep::train

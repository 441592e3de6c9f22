// The state of a run in addition to weights and its position in the data; checkpoints contain it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/train/report/callback_state.h"
#include "lockstep/train/report/epoch_sums.h"
#include "lockstep/train/report/metric_result.h"

namespace lockstep::train {

struct EvaluationRecord {
  std::int64_t step = 0;
  double loss = 0;
  std::vector<MetricResult> metrics = {};
};

struct RunRecord {
  EpochSums epoch;                             // sums of the present epoch
  std::optional<EvaluationRecord> evaluation;  // the last complete evaluation
  bool evaluation_due = false;                 // true: the last epoch's, or the run's last, evaluation is not done yet
  CallbackStates callbacks = {};               // states of callbacks at the last checkpoint
};

// Writes an evaluation as a checkpoint's metadata contain it, under "evaluation"; null: none.
nlohmann::json to_json(const std::optional<EvaluationRecord>& evaluation);
// Writes states as a checkpoint's metadata contain them, under kCallbacksKey.
inline constexpr const char* kCallbacksKey = "callbacks";
nlohmann::json to_json(const CallbackStates& states);
// Reads the record in `metadata`, which may be incomplete in files of older programs. Throws Error with `file` and the
// key if a value is not as a run writes it.
RunRecord run_record(const nlohmann::json& metadata, const std::string& file);

}  // namespace lockstep::train

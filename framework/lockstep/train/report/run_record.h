// What a run remembers from step to step beside weights and its position in the data, kept in its checkpoints.
#pragma once

#include <nlohmann/json.hpp>

#include "lockstep/train/report/epoch_sums.h"

namespace lockstep::train {

struct RunRecord {
  EpochSums epoch;              // of the epoch at hand
  nlohmann::json evaluation;    // the last whole one: step, loss, accuracy; null without
  bool evaluation_due = false;  // of the epoch that ended, or of the run's end
};

}  // namespace lockstep::train

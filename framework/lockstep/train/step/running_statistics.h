// The running mean and variance of batch norms, moved on once per update by the whole global batch's moments.
#pragma once

#include "lockstep/parallel/gradient_engine.h"
#include "lockstep/train/step/prepared_model.h"

namespace lockstep::train {

// By the sums of the engine's last step. Of this rank alone: all make the same.
void move_running_statistics(PreparedModel& prepared, const parallel::GradientEngine& engine);

}  // namespace lockstep::train

// Updates the running mean and variance of batch norms once per update, from the moments of the whole global batch.
#pragma once

#include "lockstep/parallel/gradient_engine.h"
#include "lockstep/train/prepare/prepared_model.h"

namespace lockstep::train {

// Uses the sums of the engine's last step. Not collective: all ranks compute the same values.
void move_running_statistics(PreparedModel& prepared, const parallel::GradientEngine& engine);

}  // namespace lockstep::train

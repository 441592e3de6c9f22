// The options of a session's trainer.
#pragma once

#include "lockstep/comm/communicator.h"
#include "lockstep/core/dtype.h"
#include "lockstep/train/options/options.h"

namespace lockstep::train {

DType dtype_of(Precision precision);
// Makes the options of the session's trainer: the given ones, and those that follow from other options and from ranks.
// bf16 is used if all ranks have the instructions, or with bf16-emulated. Collective.
TrainerOptions trainer_options(const comm::Communicator& comm, const Options& options);

}  // namespace lockstep::train

// Chooses which ranks read each other's memory and which exchange messages. Collective.
#pragma once

#include "lockstep/nn/module.h"
#include "lockstep/parallel/exchange/path_choice.h"
#include "lockstep/parallel/tree/world_layout.h"
#include "lockstep/train/prepare/trainer_options.h"

namespace lockstep::train {

// Chooses the path, with a reason, from a trainer's options and its model's size. Throws Error for a path that is
// impossible in this job.
parallel::PathChoice choose_path(const comm::Communicator& comm, const nn::Module& module,
                                 const TrainerOptions& options, const parallel::WorldLayout& world);

}  // namespace lockstep::train

// Which ranks read each other's memory and which exchange messages, and why. Collective.
#pragma once

#include "lockstep/nn/module.h"
#include "lockstep/parallel/exchange/path_choice.h"
#include "lockstep/train/step/trainer.h"

namespace lockstep::train {

// What a trainer's options and its model's size make of the choice. Throws Error for a path that this job cannot take.
parallel::PathChoice choose_path(const comm::Communicator& comm, const nn::Module& module,
                                 const TrainerOptions& options, const parallel::WorldLayout& world);

}  // namespace lockstep::train

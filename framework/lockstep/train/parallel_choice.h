// Which ranks read each other's memory and which exchange messages, and why. Collective.
#pragma once

#include <string>

#include "lockstep/nn/module.h"
#include "lockstep/parallel/domains.h"
#include "lockstep/train/trainer.h"

namespace lockstep::train {

struct DomainChoice {
  Domains domains;
  std::string reason;  // for the log
};

// Throws Error for a path that this job cannot take. Auto falls back to messages where shared memory has no room.
DomainChoice choose_domains(const comm::Communicator& comm, const nn::Module& module, const TrainerOptions& options,
                            const WorldLayout& world);

}  // namespace lockstep::train

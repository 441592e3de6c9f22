// Which ranks read each other's memory and which exchange messages, and why. Collective.
#pragma once

#include <string>

#include "lockstep/nn/module.h"
#include "lockstep/parallel/tree/domains.h"
#include "lockstep/train/step/trainer.h"

namespace lockstep::train {

struct DomainChoice {
  Domains domains;
  std::string reason;  // for the log
};

// Throws Error for a path that this job cannot take. Auto falls back to messages where shared memory has no room.
DomainChoice choose_domains(const comm::Communicator& comm, const nn::Module& module, const TrainerOptions& options,
                            const WorldLayout& world);

// Bytes of a bucket: large enough that a message's latency is a small part of its time, small enough that the first
// leave early. Measured between two domains; collective.
std::int64_t choose_bucket_bytes(const comm::Communicator& comm, const Domains& domains);

}  // namespace lockstep::train

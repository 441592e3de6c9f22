// Inside comm/ only: keeps messages that were given up while MPI may still read or write their memory. The memory stays
// until the messages are complete, or until the process ends. Any thread that may call MPI.
#pragma once

#include <memory>

#include "lockstep/comm/c_mpi.h"
#include "lockstep/comm/request.h"

namespace lockstep::comm {

struct Abandoned {
  std::shared_ptr<CommunicatorState> comm;  // freed after the message is complete
  MPI_Request handle;
  Keeper memory;
};

// Takes ownership of `message`, and frees earlier messages that are complete now.
void abandon(Abandoned message);

}  // namespace lockstep::comm

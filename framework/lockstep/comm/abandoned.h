// Inside comm/ only: messages that were given up, while MPI may still read or write their memory. That memory stays
// until they are complete, or until the process ends. Any thread that may call MPI.
#pragma once

#include <memory>

#include "lockstep/comm/c_mpi.h"
#include "lockstep/comm/request.h"

namespace lockstep::comm {

struct Abandoned {
  std::shared_ptr<CommunicatorState> comm;  // not to be freed before
  MPI_Request handle;
  Keeper memory;
};

// Takes the message over, and forgets those taken over earlier that are complete by now.
void abandon(Abandoned message);

}  // namespace lockstep::comm

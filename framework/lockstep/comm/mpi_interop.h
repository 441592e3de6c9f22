// For callers who use MPI themselves: the only public header of comm/ that includes mpi.h.
#pragma once

#include "lockstep/comm/c_mpi.h"
#include "lockstep/comm/communicator.h"

namespace lockstep::comm {

// Makes a Communicator from a duplicate of `caller`. Collective over `caller`, which the caller may use or free at any
// time.
Communicator duplicate_of(MPI_Comm caller, const CommunicatorOptions& options = {});

// Returns the private duplicate, for MPI calls that Communicator lacks. It returns error codes and does not abort; it
// is valid as long as `comm`.
MPI_Comm handle_of(const Communicator& comm);

}  // namespace lockstep::comm

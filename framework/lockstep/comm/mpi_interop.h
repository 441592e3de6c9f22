// For callers who run MPI themselves: this header, alone of comm's public ones, includes mpi.h.
#pragma once

#include "lockstep/comm/c_mpi.h"
#include "lockstep/comm/communicator.h"

namespace lockstep::comm {

// Collective over `caller`, which is duplicated and stays the caller's: it may be freed, or keep talking, at any time.
Communicator duplicate_of(MPI_Comm caller, const CommunicatorOptions& options = {});

// The private duplicate, for MPI calls that Communicator lacks; it returns errors instead of aborting, and ends with
// `comm`.
MPI_Comm handle_of(const Communicator& comm);

}  // namespace lockstep::comm

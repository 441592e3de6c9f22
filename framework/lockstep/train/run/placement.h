// How the threads of a job's ranks lie on the cores of its hosts.
#pragma once

#include <string>

#include "lockstep/comm/communicator.h"
#include "lockstep/host/threads.h"
#include "lockstep/train/options/options.h"

namespace lockstep::train {

// Returns the compute threads per rank that options and environment request; 0: one per core.
int requested_threads(const Options& options);
// Returns the text that identifies this rank's sharing domain on its node: empty, or the NUMA nodes to which it is
// bound.
std::string sharing_domain(const Options& options);
// Computes the threads of this rank from the CPUs that the ranks of its node may use. Collective.
host::ThreadBudget share_threads(const comm::Communicator& comm, const Options& options);
// Returns where the ranks and their threads lie on the cores: on rank 0, all hosts in one line. Collective.
std::string placement_summary(const comm::Communicator& comm, const host::ThreadBudget& threads);
std::string host_list(const comm::Communicator& comm);  // "node1 (4 ranks), node2 (4 ranks)"

}  // namespace lockstep::train

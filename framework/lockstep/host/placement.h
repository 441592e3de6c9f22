// Judges from affinity masks whether the ranks of one node have cores for all their threads. Pure functions of a
// NodePlacement, which each rank of the node can have.
#pragma once

#include <string>
#include <vector>

#include "lockstep/host/threads.h"

namespace lockstep::host {

struct RankPlacement {
  int rank = 0;            // rank in the job
  int threads = 1;         // compute threads
  std::vector<int> cores;  // physical cores in its mask, ascending; a core's number is its first hardware thread
};

struct NodePlacement {
  std::string host;
  int node_cores = 1;  // physical cores of the node, or of the container
  double quota = 0;    // CPU time that the control group grants, in cores; 0: no limit
  std::vector<RankPlacement> ranks;
};

// Describes a node, without its name, so that equal nodes can be reported in one line: "4 ranks x 2 threads on 16
// cores, each bound to 2".
std::string describe(const NodePlacement& node);

// Returns one line, with host, ranks and advice, for each cause that makes threads wait for cores: more threads than
// cores on the node; ranks bound to fewer cores than they have threads; ranks that share cores while other cores idle.
std::vector<std::string> placement_warnings(const NodePlacement& node);

}  // namespace lockstep::host

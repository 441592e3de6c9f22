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

struct PlacementWarning {
  std::string what;  // with the ranks: "rank 3 is bound to 1 core and has 2 threads"
  std::string mend;
};
// One for each thing that makes threads wait for cores: more threads than the node has cores; ranks bound to fewer
// cores than they have threads; ranks that share cores while others idle.
std::vector<PlacementWarning> placement_warnings(const NodePlacement& node);

}  // namespace lockstep::host

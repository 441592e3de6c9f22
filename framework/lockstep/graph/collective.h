// What a node that sums over ranks calls: the graph knows no MPI, and whoever compiles a model binds the ranks that it
// runs on (parallel/exchange/tree_collective.h). All ranks run the same plan's collectives in the same order, also for
// no sample.
#pragma once

#include <span>

namespace lockstep {

class Collective {
 public:
  virtual ~Collective() = default;
  // Replaces `values`, of one length on all ranks, by their sum over all ranks, the same bits on each. Throws Error.
  virtual void allreduce_sum(std::span<double> values) = 0;
};

}  // namespace lockstep

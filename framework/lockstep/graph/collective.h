// The interface by which a node of a graph sums over ranks. The graph knows no MPI; the code that compiles a model
// binds the ranks (parallel/exchange/tree_collective.h). All ranks run the same plan's collectives in the same order,
// also a rank without samples. One thread.
#pragma once

#include <span>

namespace lockstep {

class Collective {
 public:
  virtual ~Collective() = default;
  // Replaces `values`, of one length on all ranks, by their sum over all ranks, the same bits on each. Throws Error
  // where a rank or MPI fails.
  virtual void allreduce_sum(std::span<double> values) = 0;
};

}  // namespace lockstep

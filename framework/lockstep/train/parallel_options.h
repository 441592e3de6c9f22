// How gradients and weights are shared out over the ranks of a job.
#pragma once

#include <cstdint>

#include "lockstep/parallel/reduction_tree.h"

namespace lockstep::train {

// No choice here but `wire` changes a bit.
struct ParallelOptions {
  // Shared: in a node's memory, for jobs of one node. Hierarchical: that, and messages between nodes. Messages: between
  // all ranks. Auto: the first of them that can be.
  enum class Path : std::uint8_t { Auto, Shared, Hierarchical, Messages };
  Path path = Path::Auto;
  bool share_weights = true;     // weights and optimizer state once per node, each rank updating a part
  bool shard_optimizer = false;  // optimizer state once per job (ZeRO stage 1)
  Wire wire = Wire::Exact;       // what gradients are rounded to on their way from rank to rank
  bool thread = false;           // a thread drives communication; needs MPI_THREAD_MULTIPLE
};

}  // namespace lockstep::train

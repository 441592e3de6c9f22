// Options for the distribution of gradients and weights over the ranks of a job.
#pragma once

#include <cstdint>
#include <memory>

#include "lockstep/parallel/exchange/allreduce_path.h"
#include "lockstep/parallel/tree/wire.h"

namespace lockstep::parallel {
class BucketHook;
}

namespace lockstep::train {

// Only `wire`, `topk`, `local_steps`, `hook` and the path `mpi` change bits.
struct ParallelOptions {
  using Path = parallel::AllreducePath;  // with a hook, which replaces the path, messages carry all other data
  Path path = Path::Auto;
  bool share_weights = true;                    // weights and optimizer state once per node; each rank updates a part
  bool shard_optimizer = false;                 // optimizer state once per job (ZeRO stage 1)
  parallel::Wire wire = parallel::Wire::Exact;  // type to which gradients are rounded between ranks
  // Driver of messages while gradients are computed: a thread (which needs MPI_THREAD_MULTIPLE), or the computing
  // thread between steps of its plan. Auto: the faster one in steps 3 to 10 of a job on several nodes.
  enum class Overlap : std::uint8_t { Auto, Thread, Steps };
  Overlap overlap = Overlap::Auto;
  // With several domains: updates whose gradients are under way at the end of a step are made in the next forward pass.
  // All ranks must then call model() and other functions that read weights together, because ranks wait for each other.
  bool late_updates = false;
  double topk = 0;      // fraction of the gradient that is exchanged, its largest elements; 0: all elements
  int local_steps = 1;  // steps that each rank makes alone between two averages of the weights
  std::shared_ptr<parallel::BucketHook> hook = {};  // replaces path, topk and local_steps; null: they apply
};

// Makes the hook that the options require; null: the reduction tree.
std::shared_ptr<parallel::BucketHook> hook_of(const ParallelOptions& options);

}  // namespace lockstep::train

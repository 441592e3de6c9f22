// How gradients and weights are shared out over the ranks of a job.
#pragma once

#include <cstdint>
#include <memory>

#include "lockstep/parallel/exchange/path_choice.h"
#include "lockstep/parallel/reduce/bucket_hook.h"
#include "lockstep/parallel/tree/reduction_tree.h"

namespace lockstep::train {

// No choice here but `wire` and `hook` changes a bit.
struct ParallelOptions {
  using Path = parallel::AllreducePath;  // with a hook, which is its own path, messages carry all other data
  Path path = Path::Auto;
  bool share_weights = true;                    // weights and optimizer state once per node, each rank updating a part
  bool shard_optimizer = false;                 // optimizer state once per job (ZeRO stage 1)
  parallel::Wire wire = parallel::Wire::Exact;  // what gradients are rounded to on their way from rank to rank
  // Who moves messages on while gradients are computed: a thread (which needs MPI_THREAD_MULTIPLE), or the computation
  // between its steps. Auto: what is faster in steps 3 to 10 of a job of several nodes.
  enum class Overlap : std::uint8_t { Auto, Thread, Steps };
  Overlap overlap = Overlap::Auto;
  // Between domains, updates whose gradients are still on their way when a step ends are made in the next one's forward
  // pass. Then all ranks call model() and what else reads weights together, as others wait for what each has to send.
  bool late_updates = false;
  double topk = 0;      // part of the gradient that is exchanged, its largest elements; 0: all
  int local_steps = 1;  // steps that each rank makes by itself between two averages of the weights
  std::shared_ptr<parallel::BucketHook> hook =
      {};  // reduces in place of the above; empty: as path, topk and local_steps say
};

// The hook that the options ask for; null: the reduction tree.
std::shared_ptr<parallel::BucketHook> hook_of(const ParallelOptions& options);

}  // namespace lockstep::train

#include "lockstep/train/prepare/parallel_choice.h"

#include "lockstep/core/error.h"
#include "lockstep/parallel/reduce/bucket_hook.h"

namespace lockstep::train {
namespace {

using Path = ParallelOptions::Path;

// Estimates the shared memory of this node: each rank's gradients, and once values, optimizer state and up to two
// derived copies; plus a quarter for padding and small items.
std::size_t shared_bytes(const comm::Communicator& comm, const nn::Module& module, const TrainerOptions& options,
                         const parallel::WorldLayout& world) {
  std::int64_t elements = 0;
  for (const NamedParameter& p : module.named_parameters()) elements += p.parameter->shape.elements();
  const auto states = static_cast<std::int64_t>(options.rule->states().size());
  const std::int64_t copies = world.my_slots() * comm.local_size() + (options.parallel.share_weights ? 3 + states : 0);
  return static_cast<std::size_t>(elements * copies) * size_of(options.precision) * 5 / 4;
}

}  // namespace

parallel::PathChoice choose_path(const comm::Communicator& comm, const nn::Module& module,
                                 const TrainerOptions& options, const parallel::WorldLayout& world) {
  const int rank = comm.rank(), size = comm.size();
  const ParallelOptions& parallel = options.parallel;
  const auto messages = [&](std::string reason) {
    return parallel::PathChoice{parallel::AllreducePath::Messages, parallel::Domains::single_ranks(rank, size),
                                std::move(reason)};
  };
  if (size == 1) return messages("one rank: nothing is exchanged");
  if (parallel.hook) {
    check(!parallel.shard_optimizer, "allreduce",
          "shard_optimizer is set with a hook, expected one of the two: a hook leaves whole gradients on every rank");
    return messages(parallel.hook->describe());
  }
  const int nodes = comm.topology().node_count();
  if (parallel.shard_optimizer && !parallel.share_weights && nodes < size && parallel.path != Path::Messages) {
    check(parallel.path == Path::Auto, "allreduce",
          "shard_optimizer without share_weights needs the path 'messages' or 'auto'");
    return messages("messages: each rank keeps its own weights and a part of the optimizer's state");
  }
  return lockstep::parallel::choose_path(
      comm, {.path = parallel.path, .shared_bytes = shared_bytes(comm, module, options, world)});
}

}  // namespace lockstep::train

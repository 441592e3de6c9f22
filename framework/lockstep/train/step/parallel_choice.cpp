#include "lockstep/train/step/parallel_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "lockstep/comm/shared_window.h"
#include "lockstep/core/error.h"

namespace lockstep::train {
namespace {

using Path = ParallelOptions::Path;

// About what the ranks of this node want of its shared memory: gradients of each, and once values, optimizer state and
// up to two derived copies; a quarter more for padding and what is small.
std::size_t shared_bytes(const comm::Communicator& comm, const nn::Module& module, const TrainerOptions& options,
                         const WorldLayout& world) {
  std::int64_t elements = 0;
  for (const NamedParameter& p : module.named_parameters()) elements += p.parameter->shape.elements();
  const auto states = static_cast<std::int64_t>(options.rule->states().size());
  const std::int64_t copies = world.my_slots() * comm.local_size() + (options.parallel.share_weights ? 3 + states : 0);
  return static_cast<std::size_t>(elements * copies) * size_of(options.precision) * 5 / 4;
}

// Seconds of one message there and back, the best of some, between rank 0 and the first rank of another domain.
double round_trip(const comm::Communicator& comm, int other, std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    if (comm.rank() == 0) {
      comm.send(data, other);
      comm.recv(data, other);
    } else if (comm.rank() == other) {
      comm.recv(data, 0);
      comm.send(data, 0);
    }
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

}  // namespace

std::int64_t choose_bucket_bytes(const comm::Communicator& comm, const Domains& domains) {
  constexpr std::int64_t kInNode = 8 << 20, kLeast = 1 << 20, kMost = 32 << 20;
  if (domains.count() == 1) return kInNode;
  const int other = domains.of(domains.domain_of[0] == 0 ? 1 : 0)[0];
  constexpr std::size_t kLong = 256 << 10;
  const double latency = round_trip(comm, other, 8) / 2, time = round_trip(comm, other, kLong) / 2;
  const double bandwidth = static_cast<double>(kLong) / std::max(time - latency, 1e-7);
  // A bucket is two messages to each other domain, each of a part of it.
  const double bytes = 20 * latency * bandwidth * static_cast<double>(domains.count());
  return comm.broadcast_value(std::clamp(static_cast<std::int64_t>(bytes), kLeast, kMost));
}

DomainChoice choose_domains(const comm::Communicator& comm, const nn::Module& module, const TrainerOptions& options,
                            const WorldLayout& world) {
  const int rank = comm.rank(), size = comm.size(), nodes = comm.topology().node_count();
  const DomainChoice messages{Domains::single_ranks(rank, size), ""};
  const ParallelOptions& parallel = options.parallel;
  const auto because = [](DomainChoice choice, std::string reason) {
    choice.reason = std::move(reason);
    return choice;
  };
  if (size == 1) return because(messages, "one rank: nothing is exchanged");
  if (parallel.hook) {
    check(!parallel.shard_optimizer, "allreduce",
          "a hook leaves whole gradients on every rank: the optimizer cannot be sharded");
    return because(messages, parallel.hook->describe());
  }
  if (parallel.path == Path::Messages) return because(messages, "messages between all ranks, as asked for");
  check(parallel.path != Path::Shared || nodes == 1, "allreduce",
        "the path 'shared' is for one node, this job has {}: take hierarchical or auto", nodes);
  if (nodes == size) return because(messages, "messages: every rank is on a node of its own");
  if (parallel.shard_optimizer && !parallel.share_weights) {
    check(parallel.path == Path::Auto, "allreduce",
          "sharding the optimizer without sharing weights in a node needs the path 'messages' or 'auto'");
    return because(messages, "messages: each rank keeps its own weights and a part of the optimizer's state");
  }
  const std::size_t wanted = shared_bytes(comm, module, options, world), room = comm::shared_memory_room();
  const bool fits = comm.allreduce(std::int64_t{wanted <= room}, comm::ReduceOp::Min) == 1;
  if (!fits && parallel.path == Path::Auto) {
    return because(messages, fmt::format("messages: a node's /dev/shm has no room for the {} MiB that a shared path "
                                         "wants (containers: --shm-size; limits: ulimit -f)",
                                         wanted >> 20));
  }
  const std::string path =
      nodes == 1 ? "shared: all ranks are on one node" : fmt::format("hierarchical: {} ranks on {} nodes", size, nodes);
  return because({Domains::nodes(comm.topology(), rank, size), ""}, path);
}

}  // namespace lockstep::train

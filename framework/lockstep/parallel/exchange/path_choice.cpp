#include "lockstep/parallel/exchange/path_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "lockstep/comm/environment.h"
#include "lockstep/comm/shared_window.h"
#include "lockstep/core/error.h"

namespace lockstep::parallel {
namespace {

// Seconds of one round trip between rank 0 and the first rank of another domain; the least of several.
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

PathChoice choose_path(const comm::Communicator& comm, const PathRequest& request) {
  using enum AllreducePath;
  const int rank = comm.rank(), size = comm.size();
  const AllreducePath path = request.path;
  const auto messages = [&](std::string reason) {
    return PathChoice{Messages, Domains::single_ranks(rank, size), std::move(reason)};
  };
  Domains nodes = request.domains ? *request.domains : Domains::nodes(comm.topology(), rank, size);
  const int count = nodes.count();
  check(path != Shared || count == 1, "allreduce",
        "the path 'shared' is for one node, this job has {}: take hierarchical or auto", count);
  if (path == Mpi) return {Mpi, std::move(nodes), "mpi: collectives of MPI, as requested"};
  if (path == Messages) return messages("messages between all ranks, as requested");
  if (size == 1) return {path == Auto ? Messages : path, std::move(nodes), "one rank: nothing is exchanged"};
  if (path != Shared && count == size) return messages("messages: every node has one rank");
  if (path == Auto) {
    const bool fits = request.shared_bytes <= comm::free_shared_memory();
    if (comm.allreduce(std::int64_t{fits}, comm::ReduceOp::Min) == 0) {
      return messages(
          fmt::format("messages: a node's /dev/shm has no room for the {} MiB that a shared path needs "
                      "(containers: --shm-size; limits: ulimit -f)",
                      request.shared_bytes >> 20));
    }
  }
  if (count == 1) return {Shared, std::move(nodes), "shared: all ranks are on one node"};
  return {Hierarchical, std::move(nodes), fmt::format("hierarchical: {} ranks on {} nodes", size, count)};
}

std::int64_t choose_chunk_bytes(const Domains& domains) {
  constexpr std::int64_t kInNode = 256 << 10, kBetween = 2 << 20;
  return domains.count() == 1 ? kInNode : kBetween;
}

std::int64_t choose_bucket_bytes(const comm::Communicator& comm, const Domains& domains) {
  constexpr std::int64_t kInNode = 8 << 20, kLeast = 1 << 20, kMost = 32 << 20;
  if (domains.count() == 1) return kInNode;
  const int other = domains.of(domains.domain_of[0] == 0 ? 1 : 0)[0];
  constexpr std::size_t kLong = 256 << 10;
  const double latency = round_trip(comm, other, 8) / 2, time = round_trip(comm, other, kLong) / 2;
  const double bandwidth = static_cast<double>(kLong) / std::max(time - latency, 1e-7);
  // A bucket takes two messages to each other domain, each with a part of the bucket.
  const double bytes = 20 * latency * bandwidth * static_cast<double>(domains.count());
  return comm.broadcast_value(std::clamp(static_cast<std::int64_t>(bytes), kLeast, kMost));
}

// Up to this size, latency takes more of a message's time than bytes do. Two domains send as much in one round as in
// two.
bool takes_one_round(const Domains& domains, std::int64_t bytes) {
  constexpr std::int64_t kBytes = 16 << 10;
  return domains.count() <= 2 || bytes * (domains.count() - 1) <= kBytes;
}

bool may_drive_by_thread() { return comm::Environment::current_thread_level() == comm::ThreadLevel::Multiple; }

}  // namespace lockstep::parallel

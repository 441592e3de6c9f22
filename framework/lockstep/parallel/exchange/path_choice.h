// The one place where is decided how ranks exchange: by messages or in shared memory, in what chunks, in one round or
// two, driven by which thread. Used by gradients' buckets and by the public allreduce. What is measured or depends on
// the machine is agreed, so that all ranks choose alike; the functions that take a communicator are collective.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/comm/communicator.h"
#include "lockstep/parallel/tree/domains.h"

namespace lockstep::parallel {

// Shared: in a node's memory, for ranks of one node. Hierarchical: that, and messages between nodes. Messages: between
// all ranks. Mpi: MPI's own collectives. Auto: the first of these that can be, but for Mpi.
enum class AllreducePath : std::uint8_t { Auto, Shared, Hierarchical, Messages, Mpi };
std::string_view name_of(AllreducePath path);

struct PathRequest {
  AllreducePath path = AllreducePath::Auto;
  std::optional<Domains> domains = {};  // in place of nodes
  std::size_t shared_bytes = 0;         // of a node's shared memory, for all its ranks together; alike on its ranks
};

struct PathChoice {
  AllreducePath path = AllreducePath::Auto;  // that is taken: never Auto
  Domains domains = {};
  std::string reason = {};  // for a log
};

// Throws Error for a path that this job cannot take. Auto takes messages where shared memory has no room.
PathChoice choose_path(const comm::Communicator& comm, const PathRequest& request);

// Bytes of a chunk of the public allreduce: in a node all local ranks' chunks stay in the shared cache, between domains
// a message must be worth its latency.
std::int64_t choose_chunk_bytes(const Domains& domains);
// Bytes of a bucket of gradients: large enough that a message's latency is a small part of its time, small enough that
// the first buckets leave early. Measured between two domains; collective.
std::int64_t choose_bucket_bytes(const comm::Communicator& comm, const Domains& domains);

// Whether each domain sends all of so many bytes to each other, in one round, in place of parts in two rounds.
bool takes_one_round(const Domains& domains, std::int64_t bytes);

// Whether a thread of its own may call MPI while another computes: MPI was initialised with MPI_THREAD_MULTIPLE.
bool may_drive_by_thread();

}  // namespace lockstep::parallel

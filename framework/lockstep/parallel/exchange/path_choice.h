// Decides how ranks exchange data: by messages or in shared memory, in chunks of which size, in one round or two, and
// by which thread. Buckets of gradients and the public allreduce use it. All ranks decide alike, as they agree on
// measured values and on properties of machines; the functions that take a communicator are collective.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "lockstep/comm/communicator.h"
#include "lockstep/parallel/exchange/allreduce_path.h"
#include "lockstep/parallel/tree/domains.h"

namespace lockstep::parallel {

struct PathRequest {
  AllreducePath path = AllreducePath::Auto;
  std::optional<Domains> domains = {};  // in place of nodes
  std::size_t shared_bytes = 0;         // shared memory that the ranks of a node need together; alike on these ranks
};

struct PathChoice {
  AllreducePath path = AllreducePath::Auto;  // the chosen path, never Auto
  Domains domains = {};
  std::string reason = {};  // why it was chosen, for a log
};

// Chooses a path. Throws Error for a requested path that this job cannot take. Auto chooses messages if shared memory
// is too small.
PathChoice choose_path(const comm::Communicator& comm, const PathRequest& request);

// Bytes of a chunk of the public allreduce: within a node the chunks of all local ranks fit the shared cache; between
// domains a message is large enough that its latency is a small part of its time.
std::int64_t choose_chunk_bytes(const Domains& domains);
// Bytes of a bucket of gradients: large enough that the latency of a message is a small part of its time, small enough
// that the first buckets are sent early. Measured between two domains; collective.
std::int64_t choose_bucket_bytes(const comm::Communicator& comm, const Domains& domains);

// Whether each domain sends all of `bytes` to each other domain in one round; otherwise it sends parts in two rounds.
bool takes_one_round(const Domains& domains, std::int64_t bytes);

// Whether a second thread may call MPI while the first computes: MPI was initialised with MPI_THREAD_MULTIPLE.
bool may_drive_by_thread();

}  // namespace lockstep::parallel

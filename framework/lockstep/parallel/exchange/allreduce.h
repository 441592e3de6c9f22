// Sums, products, minima and maxima over all ranks of a communicator, for callers who reduce buffers of their own: the
// whole result on every rank (allreduce), or a part on each (reduce_scatter), waiting for it or not.
//
// Ranks of a domain (a node) work in each other's memory without a call of MPI: memory from allocate() is reduced where
// it lies, any other memory goes through a staging window in chunks, and what is small travels with the call. Between
// domains the drivers of a slice exchange it in messages. All paths but `Mpi` follow the one reduction tree over ranks:
// they give the same bits, which are those of a sum of two halves of the ranks, each of two halves, and so on.
//
// All ranks make the same calls in the same order, from one thread at a time; construction, destruction and allocate()
// are collective. Several reductions may be under way; input and output of one are left alone until its Handle says
// that it is complete. Wrong or differing calls throw AgreedError on all ranks (with `Mpi`, whose ranks do not meet
// first, a wrong call throws Error on its rank alone). Where MPI or a rank fails the engine is out of use. Messages of
// failed calls are taken back, so that their memory is the caller's again; if one cannot be, half-way from or to a rank
// that answers no more, the log says so, and then memory that is not from allocate() has to stay.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/core/partition.h"
#include "lockstep/core/tensor.h"
#include "lockstep/parallel/exchange/handle.h"
#include "lockstep/parallel/exchange/path_choice.h"

namespace lockstep::parallel {

class ReductionQueue;

struct AllreduceOptions {
  AllreducePath path = AllreducePath::Auto;
  std::optional<Domains> domains = {};  // in place of nodes, for Shared and Hierarchical
  std::int64_t chunk_bytes = 0;         // of staged and exchanged memory; 0: chosen; alike on all ranks
  bool threads = false;                 // long sums may use OpenMP
};

class Allreduce {
 public:
  // Throws Error for a path that this job cannot take.
  explicit Allreduce(const comm::Communicator& comm, const AllreduceOptions& options = {});
  ~Allreduce();
  Allreduce(const Allreduce&) = delete;
  Allreduce& operator=(const Allreduce&) = delete;

  AllreducePath path() const { return choice_.path; }           // that is taken: never Auto
  const std::string& reason() const { return choice_.reason; }  // for a log

  // Zeros, until the engine ends; at a page where ranks share memory. Ranks may ask for different sizes.
  std::span<std::byte> allocate(std::size_t bytes);

  // out = the reduction of all ranks' `in`, which may be `out`; else they must not overlap. Any count, alike on all
  // ranks.
  [[nodiscard]] Handle iallreduce(comm::ConstBuffer in, comm::Buffer out, comm::ReduceOp op);
  [[nodiscard]] Handle iallreduce(comm::Buffer data, comm::ReduceOp op) { return iallreduce(data, data, op); }
  void allreduce(comm::ConstBuffer in, comm::Buffer out, comm::ReduceOp op) { iallreduce(in, out, op).wait(); }
  void allreduce(comm::Buffer data, comm::ReduceOp op) { allreduce(data, data, op); }

  // out = this rank's part of that reduction: counts[r] elements for rank r, one part after the other, together as many
  // as `in` has; alike on all ranks, and 0 for some if need be. `out` may be the part of `in` itself, else they must
  // not overlap.
  [[nodiscard]] Handle ireduce_scatter(comm::ConstBuffer in, comm::Buffer out, std::span<const std::int64_t> counts,
                                       comm::ReduceOp op);
  void reduce_scatter(comm::ConstBuffer in, comm::Buffer out, std::span<const std::int64_t> counts, comm::ReduceOp op) {
    ireduce_scatter(in, out, counts, op).wait();
  }

 private:
  Handle start(comm::ConstBuffer in, comm::Buffer out, std::vector<Range> parts, comm::ReduceOp op, std::string error);

  comm::Communicator comm_;  // of this engine alone
  PathChoice choice_;
  std::vector<AlignedBuffer> private_;     // of allocate() where no memory is shared
  std::unique_ptr<ReductionQueue> queue_;  // null with path Mpi or one rank
};

}  // namespace lockstep::parallel

// Sums, products, minima and maxima of a caller's buffers over all ranks of a communicator. allreduce gives every rank
// the whole result, reduce_scatter gives each rank a part. The calls with i return at once with a Handle.
//
// The ranks of a domain (a node) work in each other's memory without a call of MPI: memory from allocate() is reduced
// in place, other memory is copied through a staging window in chunks, and small data travels with the call. Between
// domains the drivers of a slice exchange it in messages. All paths except `Mpi` follow the reduction tree over ranks,
// so they give the same bits: those of a sum of two halves of the ranks, each a sum of two halves, and so on.
//
// All ranks make the same calls in the same order, from one thread at a time; construction, destruction and allocate()
// are collective. Several reductions may be in progress; the caller does not touch input and output of a reduction
// until its Handle is complete. Wrong or different calls throw AgreedError on all ranks; with `Mpi`, where ranks do not
// compare calls, a wrong call throws Error on its rank alone. After a failure of MPI or of a rank the engine cannot be
// used. It cancels the messages of failed calls, so that the caller may use their memory again. If a message to or from
// a rank that no longer answers cannot be cancelled, or a reduction by MPI does not end, the log says so; memory that
// is not from allocate() must then stay.
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
  std::int64_t chunk_bytes = 0;         // size of a staged chunk; 0: chosen by the engine; alike on all ranks
  bool threads = false;                 // long reductions may use OpenMP
};

class Allreduce {
 public:
  // Collective. Throws Error for a path that this job cannot take.
  explicit Allreduce(const comm::Communicator& comm, const AllreduceOptions& options = {});
  ~Allreduce();
  Allreduce(const Allreduce&) = delete;
  Allreduce& operator=(const Allreduce&) = delete;

  AllreducePath path() const { return choice_.path; }           // the chosen path, never Auto
  const std::string& reason() const { return choice_.reason; }  // why it was chosen, for a log

  // Returns zero-filled memory, which the engine owns; page-aligned where ranks share memory. Collective; sizes may
  // differ between ranks.
  std::span<std::byte> allocate(std::size_t bytes);

  // out = the reduction of `in` over all ranks. `in` may be `out`; otherwise they must not overlap. Count, type and
  // operation are equal on all ranks; any count is legal.
  [[nodiscard]] Handle iallreduce(comm::ConstBuffer in, comm::Buffer out, comm::ReduceOp op);
  [[nodiscard]] Handle iallreduce(comm::Buffer data, comm::ReduceOp op) { return iallreduce(data, data, op); }
  void allreduce(comm::ConstBuffer in, comm::Buffer out, comm::ReduceOp op) { iallreduce(in, out, op).wait(); }
  void allreduce(comm::Buffer data, comm::ReduceOp op) { allreduce(data, data, op); }

  // out = this rank's part of the reduction. Rank r gets counts[r] elements, part after part; the counts add up to the
  // elements of `in`, are equal on all ranks, and may be 0. `out` may be this rank's part of `in`; otherwise they must
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
  std::vector<AlignedBuffer> private_;            // of allocate() where no memory is shared
  std::unique_ptr<ReductionQueue> queue_;         // null with path Mpi or one rank
  std::vector<std::weak_ptr<Reduction>> by_mpi_;  // of path Mpi; a call removes those whose handles are gone
};

}  // namespace lockstep::parallel

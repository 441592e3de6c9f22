// Sums, products, minima and maxima over all ranks of a communicator, for callers who reduce buffers of their own.
// Ranks of a domain (a node) work in each other's memory without a call of MPI: memory from allocate() is reduced where
// it lies, each rank doing its slice of all buffers; any other memory goes through a staging window in chunks, and what
// is small travels with the call. Between domains the drivers of a slice exchange it in messages. All paths but `Mpi`
// follow the one reduction tree over ranks: they give the same bits. Construction, destruction, allocate() and
// allreduce() are collective, from one thread at a time. Wrong or differing calls throw AgreedError on all ranks; where
// MPI or a rank fails the engine is out of use. Messages of the failed call are taken back, so that its memory is the
// caller's again; if one cannot be, half-way from or to a rank that answers no more, the log says so, and then memory
// that is not from allocate() has to stay.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/parallel/exchange/path_choice.h"
#include "lockstep/parallel/exchange/reduce_calls.h"
#include "lockstep/parallel/exchange/slice_exchange.h"
#include "lockstep/parallel/node_memory.h"

namespace lockstep {

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

  AllreducePath path() const { return path_; }           // that is taken: never Auto
  const std::string& reason() const { return reason_; }  // for a log

  // Zeros, until the engine ends; at a page where ranks share memory. Ranks may ask for different sizes.
  std::span<std::byte> allocate(std::size_t bytes);

  // out = the reduction of all ranks' `in`, which may be `out`; else they must not overlap. Any count, alike on all
  // ranks.
  void allreduce(comm::ConstBuffer in, comm::Buffer out, comm::ReduceOp op);
  void allreduce(comm::Buffer data, comm::ReduceOp op) { allreduce(data, data, op); }

 private:
  static constexpr int kSlots = 4;  // chunks under way
  enum Flag : int { kFinished = ReduceCalls::kFlags, kFilled, kReduced, kCopied, kFlags };
  // A chunk is filled into the window, reduced, and copied from there, by all ranks side by side; these count chunks.
  struct Pass {
    comm::ConstBuffer in;
    comm::Buffer out;
    comm::ReduceOp op;
    bool direct;                 // `in` of all ranks lies in memory that the domain sees
    std::int64_t chunk, chunks;  // elements; how many
    std::int64_t filled = 0, begun = 0, reduced = 0, copied = 0;
    Range range(std::int64_t index) const { return {index * chunk, std::min((index + 1) * chunk, in.count)}; }
  };

  void choose(const AllreduceOptions& options);
  void make_windows(std::int64_t chunk_bytes);
  std::string fault(const comm::ConstBuffer& in, const comm::Buffer& out) const;
  ReduceCall::Place place_of(const void* data, std::int64_t bytes) const;
  std::byte* address(int local_rank, const ReduceCall::Place& place) const;
  void reduce_in_place(const comm::ConstBuffer& in, const comm::Buffer& out, comm::ReduceOp op);
  void run(Pass& pass);
  bool fill(Pass& pass);
  bool reduce(Pass& pass);
  bool exchange(Pass& pass);
  bool copy_out(Pass& pass);
  void reduce_slice(const Pass& pass, std::int64_t index, int slice);
  void start_exchange(const Pass& pass, std::int64_t index, int slice);
  Range slice_of(Range chunk, int slice) const;
  bool drives(int slice) const { return domains_.driver(domains_.mine(), slice) == domains_.rank; }
  void give_up();
  const void* operand(const Pass& pass, std::int64_t index, int local_rank, std::int64_t element) const;
  std::byte* staging(int local_rank, std::int64_t index) const;
  std::uint32_t flag_value(std::int64_t chunks) const { return base_ + static_cast<std::uint32_t>(chunks); }

  comm::Communicator comm_;  // of this engine alone
  AllreducePath path_ = AllreducePath::Mpi;
  std::string reason_;
  Domains domains_;
  int local_rank_ = 0;
  bool threads_ = false, failed_ = false;
  // None of these with path Mpi or one rank.
  std::unique_ptr<NodeMemory> memory_;
  std::unique_ptr<DomainTree> tree_;
  std::unique_ptr<CommTransport> transport_;
  std::unique_ptr<SharedFlags> flags_;
  std::unique_ptr<ReduceCalls> calls_;
  std::vector<std::vector<std::span<std::byte>>> allocations_;  // of allocate(), each by local rank
  std::vector<AlignedBuffer> private_;                          // of allocate() where no memory is shared
  std::vector<std::span<std::byte>> staging_;                   // by local rank: kSlots chunks
  std::int64_t chunk_bytes_ = 0;
  std::uint32_t base_ = 0;    // chunks of earlier calls
  std::uint32_t direct_ = 0;  // calls that were reduced in place
  std::int64_t calls_made_ = 0;
  struct InFlightChunk {  // of one slice that this rank drives, in one slot
    SliceExchange exchange;
    std::shared_ptr<std::byte[]> open;  // the domain's open sums, where they are not operands themselves
  };
  std::vector<std::vector<InFlightChunk>> in_flight_;  // by slot
  std::vector<int> slices_;                            // that this rank drives
  std::vector<const void*> operands_;
  std::vector<void*> outs_;
};

}  // namespace lockstep

// Long reductions in chunks. The ranks of a domain copy a chunk into shared memory; the driver of each slice reduces it
// and exchanges it with other domains; the ranks copy the result out. The chunks of all reductions are numbered in one
// sequence, so several are in flight at once, and a reduction begins while the one before it ends. Memory that all
// ranks of a domain see is reduced in place. All ranks add the same reductions in the same order. One thread at a time.
// Throws Error where MPI or a rank fails.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lockstep/parallel/exchange/shared_flags.h"
#include "lockstep/parallel/exchange/slice_exchange.h"

namespace lockstep::parallel {

// One reduction. The caller keeps its memory until it is done.
struct ChunkedReduction {
  comm::ConstBuffer in;
  comm::Buffer out;
  comm::ReduceOp op;
  std::vector<Range> parts = {};              // by rank: the elements of the result that it gets; empty: all
  std::vector<const std::byte*> inputs = {};  // by local rank, if the domain sees all inputs
  std::vector<std::byte*> outputs = {};       // likewise
  bool done = false;

  // Set by the pipeline:
  std::int64_t first = 0, chunks = 0, chunk = 0;  // number of its first chunk; number of chunks; elements of a chunk
  bool in_place = false;                          // one chunk, from all inputs to all outputs
  bool by_rank = false;                           // each chunk is a share of each rank's part
};

class ChunkPipeline {
 public:
  static constexpr int kSlots = 4;  // chunks in flight
  static constexpr int kFlags = 3;

  struct Options {
    std::int64_t chunk_bytes = 0;
    bool threads = false;  // may use OpenMP
    int first_flag = 0;    // flags [first_flag, first_flag + kFlags) belong to the pipeline
    int first_tag = 0;     // so do the tags of messages from here on
  };
  // All references outlive the pipeline. `staging` is by local rank, bytes(chunk_bytes) each.
  ChunkPipeline(Transport& transport, SharedFlags& flags, std::span<const std::span<std::byte>> staging,
                const Domains& domains, const DomainTree& tree, const Options& options);
  static std::size_t bytes(std::int64_t chunk_bytes) { return static_cast<std::size_t>(kSlots * chunk_bytes); }

  void add(std::shared_ptr<ChunkedReduction> reduction);
  bool progress();  // whether something moved

 private:
  enum Flag : int { kFilled, kReduced, kCopied };
  struct InFlightChunk {  // one slice of a chunk, which this rank drives
    SliceExchange exchange;
    std::shared_ptr<std::byte[]> open;  // open sums of this domain, unless operands hold them
  };
  using Job = ChunkedReduction;

  bool fill();
  bool reduce();
  bool exchange();
  bool copy_out();
  void start(const Job& job, std::int64_t number, int slice, InFlightChunk& chunk);
  void set_in_place(const Job& job, SliceWork& work) const;
  void set_by_rank(const Job& job, std::int64_t number, SliceWork& work) const;
  void set_slice(const Job& job, std::int64_t number, InFlightChunk& chunk, SliceWork& work);

  Job& job_of(std::int64_t number) const;
  static Range elements_of(const Job& job, std::int64_t number);
  Range slice_of(Range chunk, int slice) const;
  const void* operand(const Job& job, std::int64_t number, int local_rank, std::int64_t element) const;
  std::byte* staging(int local_rank, std::int64_t number) const;
  std::vector<InFlightChunk>& in_flight(std::int64_t number) {
    return in_flight_[static_cast<std::size_t>(number % kSlots)];
  }
  bool drives(int slice) const { return domains_.driver(domains_.mine(), slice) == domains_.rank; }
  void raise(Flag flag, std::int64_t chunks) {
    flags_.raise(options_.first_flag + flag, static_cast<std::uint32_t>(chunks));
  }
  bool all_reached(Flag flag, std::int64_t chunks) const {
    return flags_.all_reached(options_.first_flag + flag, static_cast<std::uint32_t>(chunks));
  }

  Transport& transport_;
  SharedFlags& flags_;
  const Domains& domains_;
  const DomainTree& tree_;
  Options options_;
  std::vector<std::span<std::byte>> staging_;          // by local rank: slot after slot
  std::vector<int> slices_;                            // the slices that this rank drives
  std::vector<std::vector<InFlightChunk>> in_flight_;  // by slot, by those slices
  std::vector<std::shared_ptr<Job>> jobs_;             // the oldest first
  // Numbers of chunks, of all reductions, that have reached each state.
  struct Counts {
    std::int64_t added = 0, filled = 0, begun = 0, reduced = 0, copied = 0;
  } counts_;
};

}  // namespace lockstep::parallel

// Reductions of one communicator, one after the other in the order of the calls, alike on all ranks, of which several
// are under way at once: a call is posted as soon as there is a place for it, met by the other ranks' calls, and then
// done at once (small data) or handed to the pipeline. Moves on when its reductions are driven, on the thread that
// does. Making it, ending it and allocate() are collective. After a failure of MPI or a rank it is out of use.
#pragma once

#include <deque>
#include <exception>
#include <memory>
#include <span>

#include "lockstep/parallel/exchange/call_meeting.h"
#include "lockstep/parallel/exchange/chunk_pipeline.h"
#include "lockstep/parallel/exchange/handle.h"

namespace lockstep::parallel {

class ReductionQueue {
 public:
  struct Options {
    std::int64_t chunk_bytes = 0;
    bool threads = false;
  };
  // What it refers to outlives it.
  ReductionQueue(const comm::Communicator& comm, const Domains& domains, const Options& options);
  // Ranks that make more calls do not wait for this one; what is under way is given up.
  ~ReductionQueue();
  ReductionQueue(const ReductionQueue&) = delete;
  ReductionQueue& operator=(const ReductionQueue&) = delete;

  // Zeros, until the queue ends, at a page. Ranks may ask for different sizes.
  std::span<std::byte> allocate(std::size_t bytes);
  // Starts a reduction. `error`: what is wrong with this rank's call; then no memory is touched, and all ranks throw.
  std::shared_ptr<Reduction> start(ChunkedReduction reduction, const std::string& error);

 private:
  struct Entry : Reduction {
    ReductionQueue* queue = nullptr;  // null: it has ended
    ReduceCall call;
    ChunkedReduction reduction;
    std::exception_ptr refusal;

    explicit Entry(ChunkedReduction r) : reduction(std::move(r)) {}
    bool advance() override;
    bool complete() override;
    void give_up() noexcept override;
  };

  bool progress();
  bool post();
  bool meet();
  void begin(const std::shared_ptr<Entry>& entry);
  void give_up() noexcept;

  const comm::Communicator& comm_;
  const Domains& domains_;
  DomainTree tree_;
  NodeMemory memory_;
  SharedAllocations allocations_;
  std::unique_ptr<CommTransport> transport_;  // null after a failure
  std::unique_ptr<SharedFlags> flags_;
  std::unique_ptr<CallMeeting> meeting_;
  std::unique_ptr<ChunkPipeline> pipeline_;
  std::deque<std::shared_ptr<Entry>> entries_;  // not collected: met ones, posted ones, the rest
  struct Counts {
    std::size_t posted = 0, met = 0;  // of the entries
    std::int64_t calls = 0;           // that were met, since the queue was made
  } counts_;
};

}  // namespace lockstep::parallel

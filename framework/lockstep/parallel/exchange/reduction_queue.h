// The queue of reductions of one communicator, in the order of the calls, alike on all ranks; several are in progress
// at once. A call is posted as soon as a slot is free and meets the calls of the other ranks; then small data is
// reduced at once, and other data goes to the pipeline. The queue makes progress on the thread that drives its
// reductions. Constructor, destructor and allocate() are collective. After a failure of MPI or of a rank it cannot be
// used.
#pragma once

#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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
  // All references outlive the queue.
  ReductionQueue(const comm::Communicator& comm, const Domains& domains, const Options& options);
  // Gives up reductions in progress, and logs that as an error; ranks that make or complete more calls do not wait for
  // this rank.
  ~ReductionQueue();
  ReductionQueue(const ReductionQueue&) = delete;
  ReductionQueue& operator=(const ReductionQueue&) = delete;

  // Returns zero-filled, page-aligned memory, which the queue owns. Sizes may differ between ranks.
  std::span<std::byte> allocate(std::size_t bytes);
  // Starts a reduction. A text in `error` is the error of this rank's call: then no memory is touched and all ranks
  // throw.
  std::shared_ptr<Reduction> start(ChunkedReduction reduction, const std::string& error);

 private:
  struct Entry : Reduction {
    ReductionQueue* queue = nullptr;  // null: the queue has been destroyed
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
  std::shared_ptr<Entry> entry_for(ChunkedReduction reduction);
  void remove(const Entry& entry);
  void check_usable() const;
  void give_up(std::string_view reason) noexcept;

  const comm::Communicator& comm_;
  const Domains& domains_;
  DomainTree tree_;
  NodeMemory memory_;
  SharedAllocations allocations_;
  std::unique_ptr<CommTransport> transport_;  // null after a failure
  std::unique_ptr<SharedFlags> flags_;
  std::unique_ptr<CallMeeting> meeting_;
  std::unique_ptr<ChunkPipeline> pipeline_;
  std::string failure_;  // the reason of the failure
  struct Calls {
    std::vector<std::shared_ptr<Entry>> open;   // in order: calls that have met, calls that are posted, all other calls
    std::size_t posted = 0, met = 0;            // of the open calls
    std::vector<std::shared_ptr<Entry>> spare;  // of complete calls, so that a call allocates nothing
    std::int64_t made = 0;                      // calls that have met since the queue was made
  } calls_;
};

}  // namespace lockstep::parallel

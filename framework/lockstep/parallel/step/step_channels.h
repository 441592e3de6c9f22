// The two channels of a training step, for gradients and for the control block; each has a communicator, its transport
// and the shared flags of the domain. The class also detects peers that failed or left, so that no wait lasts for ever.
// One thread; another thread may drive only the transport of a channel.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/parallel/exchange/node_memory.h"
#include "lockstep/parallel/exchange/shared_flags.h"
#include "lockstep/parallel/exchange/transport.h"
#include "lockstep/parallel/reduce/bucket_hook.h"

namespace lockstep::parallel {

struct StepChannel {
  // `rows`: memory of the flags, by local rank.
  StepChannel(const comm::Communicator& parent, std::span<const std::span<std::byte>> rows, int local_rank)
      : comm(parent.duplicate()), flags(rows, local_rank), transport(comm) {}
  StepChannel(const StepChannel&) = delete;
  StepChannel& operator=(const StepChannel&) = delete;

  comm::Communicator comm;
  SharedFlags flags;
  CommTransport transport;
};

class StepChannels {
 public:
  struct Flags {
    std::vector<std::span<std::byte>> reduction, control;  // rows by local rank
  };
  // Collective. `memory` outlives this.
  StepChannels(const comm::Communicator& comm, NodeMemory& memory, const Flags& flags);
  // Ends the hook, if there is one.
  ~StepChannels();
  StepChannels(const StepChannels&) = delete;
  StepChannels& operator=(const StepChannels&) = delete;

  StepChannel& gradients() { return gradients_; }
  StepChannel& control() { return control_; }
  // Collective: begins the hook, which reduces buckets in place of the reducer. The hook ends with the channels and
  // must outlive them.
  void begin_hook(const comm::Communicator& comm, BucketHook& hook, std::span<const std::int64_t> bucket_elements);

  // Returns when all ranks of the domain are here: see NodeMemory::fence().
  void fence() { memory_.fence(); }
  // Throws Error if a rank of the node has failed, or left some seconds ago.
  void check_peers();
  // Tell the other ranks of the node that this rank has failed; or that it leaves after `updates` updates, because of
  // an error if `failing`.
  void fail();
  void leave(std::int64_t updates, bool failing);
  bool has_left() const { return left_; }

 private:
  NodeMemory& memory_;
  StepChannel gradients_, control_;
  BucketHook* hook_ = nullptr;
  bool left_ = false;
  std::optional<std::chrono::steady_clock::time_point> peer_left_since_;  // when check_peers() first saw it
  std::int64_t looks_since_ = 0;
};

}  // namespace lockstep::parallel

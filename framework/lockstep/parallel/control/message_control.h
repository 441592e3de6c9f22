// A control block with its own communicator and memory, over messages alone: for sums outside of training steps.
// Collective; one thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "lockstep/parallel/control/control_block.h"

namespace lockstep::parallel {

class MessageControl {
 public:
  MessageControl(const comm::Communicator& comm, const WorldLayout& world, const ControlSize& size);
  ControlBlock& block() { return *block_; }
  // Waits until the block is complete and adds it up. Throws Error where the communicator is poisoned, and any
  // exception of `work`.
  void finish();
  // Sets a function that finish() calls again and again while it waits; an exception, such as the failure of a rank
  // that `work` has noticed, ends the wait.
  void while_waiting(std::function<void()> work) { work_ = std::move(work); }

 private:
  comm::Communicator comm_;
  std::vector<std::byte> flag_memory_;
  std::shared_ptr<std::vector<std::byte>> blocks_;  // memory of the messages
  CommTransport transport_;
  std::function<void()> work_ = [] {};
  std::unique_ptr<SharedFlags> flags_;
  std::unique_ptr<ControlBlock> block_;
};

}  // namespace lockstep::parallel

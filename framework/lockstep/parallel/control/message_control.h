// A control block by itself, over messages alone: for what is added up outside training steps. Collective; one thread.
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
  // Until complete, and total(). Throws Error where the communicator is poisoned, and what `work` throws.
  void finish();
  // Called again and again while finish() waits for other ranks: an error that `work` throws, as it knows of a rank's
  // failure, ends the wait.
  void while_waiting(std::function<void()> work) { work_ = std::move(work); }

 private:
  comm::Communicator comm_;
  std::vector<std::byte> flag_memory_;
  std::shared_ptr<std::vector<std::byte>> blocks_;  // messages lie in them
  CommTransport transport_;
  std::function<void()> work_ = [] {};
  std::unique_ptr<SharedFlags> flags_;
  std::unique_ptr<ControlBlock> block_;
};

}  // namespace lockstep::parallel

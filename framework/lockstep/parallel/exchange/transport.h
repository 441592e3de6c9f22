// Messages between ranks for reductions: they are started and tested, never waited for. The caller owns the buffers and
// keeps them until their handle is done. If a transport is destroyed before, MPI may still write to them; so memory of
// messages is given to keep(), or outlives the transport anyway (SharedWindow, NodeMemory). One thread at a time, the
// one that drives the reduction.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep::parallel {

class Transport {
 public:
  using MessageHandle = int;
  virtual ~Transport() = default;
  virtual MessageHandle send(comm::ConstBuffer data, int rank, int tag) = 0;
  virtual MessageHandle receive(comm::Buffer data, int rank, int tag) = 0;
  // Makes progress; returns true once the message is complete. The handle is invalid after that.
  virtual bool done(MessageHandle handle) = 0;
  // Keeps memory of messages until the transport is destroyed, and longer if messages are then incomplete.
  virtual void keep(comm::Keeper) {}  // NOLINT(performance-unnecessary-value-param): overriding functions store it

  // Tests all handles and removes those that are done; returns true once none is left.
  bool all_done(std::vector<MessageHandle>& handles) {
    std::erase_if(handles, [this](MessageHandle t) { return done(t); });
    return handles.empty();
  }
};

// Over a communicator that is used for nothing else.
class CommTransport : public Transport {
 public:
  explicit CommTransport(const comm::Communicator& comm) : comm_(comm) {}
  MessageHandle send(comm::ConstBuffer data, int rank, int tag) override {
    return hold(comm_.isend(data, rank, tag, kept_));
  }
  MessageHandle receive(comm::Buffer data, int rank, int tag) override {
    return hold(comm_.irecv(data, rank, tag, kept_));
  }
  bool done(MessageHandle handle) override {
    if (!requests_[static_cast<std::size_t>(handle)].test()) return false;
    free_.push_back(handle);
    return true;
  }
  void keep(comm::Keeper memory) override { kept_->push_back(std::move(memory)); }

 private:
  MessageHandle hold(comm::Request request);

  const comm::Communicator& comm_;
  std::shared_ptr<std::vector<comm::Keeper>> kept_ = std::make_shared<std::vector<comm::Keeper>>();  // of all messages
  std::vector<comm::Request> requests_;                                                              // by handle
  std::vector<MessageHandle> free_;
};

}  // namespace lockstep::parallel

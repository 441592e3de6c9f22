// Messages between ranks as the reduction needs them: started, asked after, never waited for. Buffers stay the caller's
// until their handle is done; a transport that ends before leaves messages to MPI that cannot be taken back, so their
// memory is kept with it, or stays by itself (a SharedWindow's, NodeMemory's). Called by one thread at a time,
// whichever drives the reduction.
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
  // Drives the message on; once true the handle is used up.
  virtual bool done(MessageHandle handle) = 0;
  // Keeps memory that messages lie in until the transport's end, and on if messages are left then.
  virtual void keep(comm::Keeper) {}

  // Drives all on and forgets those that are done; true once none is left.
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

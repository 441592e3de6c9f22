// Messages between ranks as the reduction needs them: started, asked after, never waited for. Buffers stay the caller's
// until their ticket is done; a transport that ends before leaves messages to MPI that cannot be taken back, so their
// memory is kept with it, or stays by itself (a SharedWindow's, NodeMemory's). Called by one thread at a time,
// whichever drives the reduction.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep {

class Transport {
 public:
  using Ticket = int;
  virtual ~Transport() = default;
  virtual Ticket send(comm::ConstBuffer data, int rank, int tag) = 0;
  virtual Ticket receive(comm::Buffer data, int rank, int tag) = 0;
  // Drives the message on; once true the ticket is used up.
  virtual bool done(Ticket ticket) = 0;
  // Keeps memory that messages lie in until the transport's end, and on if messages are left then.
  virtual void keep(comm::Keeper) {}

  // Drives all on and forgets those that are done; true once none is left.
  bool all_done(std::vector<Ticket>& tickets) {
    std::erase_if(tickets, [this](Ticket t) { return done(t); });
    return tickets.empty();
  }
};

// Over a communicator that is used for nothing else.
class CommTransport : public Transport {
 public:
  explicit CommTransport(const comm::Communicator& comm) : comm_(comm) {}
  Ticket send(comm::ConstBuffer data, int rank, int tag) override { return hold(comm_.isend(data, rank, tag, kept_)); }
  Ticket receive(comm::Buffer data, int rank, int tag) override { return hold(comm_.irecv(data, rank, tag, kept_)); }
  bool done(Ticket ticket) override {
    if (!requests_[static_cast<std::size_t>(ticket)].test()) return false;
    free_.push_back(ticket);
    return true;
  }
  void keep(comm::Keeper memory) override { kept_->push_back(std::move(memory)); }

 private:
  Ticket hold(comm::Request request);

  const comm::Communicator& comm_;
  std::shared_ptr<std::vector<comm::Keeper>> kept_ = std::make_shared<std::vector<comm::Keeper>>();  // of all messages
  std::vector<comm::Request> requests_;                                                              // by ticket
  std::vector<Ticket> free_;
};

}  // namespace lockstep

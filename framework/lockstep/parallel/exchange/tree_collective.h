// Sums over the ranks of a communicator for collective nodes of a graph, of which every rank gets the same bits: those
// of the reduction tree with one leaf per rank. At each level of the tree the two halves of a node exchange their sums,
// so log2(ranks) messages lie on the way and nothing is broadcast. Allocates when a vector is longer than all before.
// Making it is collective; one thread at a time; throws Error where MPI fails.
#pragma once

#include <functional>
#include <vector>

#include "lockstep/graph/collective.h"
#include "lockstep/parallel/exchange/transport.h"

namespace lockstep {

class TreeCollective : public Collective {
 public:
  explicit TreeCollective(const comm::Communicator& comm) : comm_(comm.duplicate()), transport_(comm_) {
    transport_.keep(messages_);
  }

  void allreduce_sum(std::span<double> values) override;
  // Called again and again while a sum waits for other ranks, which may themselves wait for what `work` drives.
  void while_waiting(std::function<void()> work) { work_ = std::move(work); }

 private:
  void exchange(int level, std::size_t count);

  comm::Communicator comm_;  // for nothing else
  struct Messages {
    std::vector<double> sent, received;
  };
  std::shared_ptr<Messages> messages_ = std::make_shared<Messages>();
  CommTransport transport_;
  std::vector<Transport::MessageHandle> handles_;
  std::function<void()> work_ = [] {};
};

}  // namespace lockstep

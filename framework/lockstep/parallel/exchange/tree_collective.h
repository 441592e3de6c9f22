// Sums over the ranks of a communicator for collective nodes of a graph. Every rank gets the same bits, those of the
// reduction tree with one shard per rank. An adapter of SliceExchange in which each rank is a domain. It allocates when
// a vector is longer than all before. Construction is collective. One thread at a time. Throws Error where MPI fails.
#pragma once

#include <functional>
#include <memory>

#include "lockstep/core/tensor.h"
#include "lockstep/graph/collective.h"
#include "lockstep/parallel/exchange/slice_exchange.h"

namespace lockstep::parallel {

class TreeCollective : public Collective {
 public:
  explicit TreeCollective(const comm::Communicator& comm);

  void allreduce_sum(std::span<double> values) override;
  // Sets a function that is called again and again while a sum waits for other ranks, as these may wait for
  // communication that `work` drives.
  void while_waiting(std::function<void()> work) { work_ = std::move(work); }

 private:
  void reserve(std::size_t bytes);

  comm::Communicator comm_;  // of this object alone
  Domains domains_;
  DomainTree tree_;
  // Messages use memory of this class, as an abandoned message may outlive the caller's memory.
  std::shared_ptr<std::byte[]> memory_;
  std::size_t capacity_ = 0;
  CommTransport transport_;
  SliceExchange exchange_;
  std::function<void()> work_ = [] {};
};

}  // namespace lockstep::parallel

// Sums over the ranks of a communicator for collective nodes of a graph, of which every rank gets the same bits: those
// of the reduction tree with one shard per rank. An adapter of SliceExchange, each rank being a domain of its own.
// Allocates when a vector is longer than all before. Making it is collective; one thread at a time; throws Error where
// MPI fails.
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
  // Called again and again while a sum waits for other ranks, which may themselves wait for what `work` drives.
  void while_waiting(std::function<void()> work) { work_ = std::move(work); }

 private:
  void reserve(std::size_t bytes);

  comm::Communicator comm_;  // for nothing else
  Domains domains_;
  DomainTree tree_;
  // Messages lie in memory of this class: one that is given up may outlive the caller's.
  std::shared_ptr<std::byte[]> memory_;
  std::size_t capacity_ = 0;
  CommTransport transport_;
  SliceExchange exchange_;
  std::function<void()> work_ = [] {};
};

}  // namespace lockstep::parallel

// One slice on its way from the open sums of the domains to the root and back: a part of it is summed in each domain,
// whose driver of the slice gets that part of all open sums and sends the root's part to the others. A state machine
// over plain messages; one thread.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "lockstep/core/tensor.h"
#include "lockstep/parallel/exchange/transport.h"
#include "lockstep/parallel/exchange/tree_reduce.h"
#include "lockstep/parallel/tree/domain_tree.h"

namespace lockstep {

class SliceExchange {
 public:
  static constexpr int kTags = 2;
  // What it refers to outlives it. Messages of slice `slice` take tags [tag, tag + kTags).
  SliceExchange(Transport& transport, const Domains& domains, const DomainTree& tree, int slice, int tag);

  // `open`: this domain's open sums, n elements each, alike on all drivers of the slice; `result`: where n elements of
  // the root go, which may be an open sum. Both are used until done.
  struct Work {
    comm::Element element;
    comm::ReduceOp op;
    std::int64_t n;
    std::span<const void* const> open;
    void* result;
  };
  void start(const Work& work);
  // Drives the messages on; true once the result is there.
  bool done();

 private:
  enum class Phase { Idle, Exchange, Gather };
  Range part(int domain) const { return part_in_blocks({0, n_}, domains_.count(), domain, kBlock); }
  template <class Each>
  void for_each_peer(const Each& each);
  void gather();

  static constexpr std::int64_t kBlock = 64;  // elements: parts begin at cache lines
  Transport& transport_;
  const Domains& domains_;
  const DomainTree& tree_;
  int slice_, tag_;
  Phase phase_ = Phase::Idle;
  comm::Element element_ = comm::Element::Byte;
  comm::ReduceOp op_ = comm::ReduceOp::Sum;
  std::int64_t n_ = 0;
  std::byte* result_ = nullptr;
  std::shared_ptr<std::byte[]> memory_;  // others' open sums of my part
  std::size_t capacity_ = 0;
  std::vector<const void*> operands_;  // by open sum of the tree
  std::vector<Transport::MessageHandle> handles_;
};

}  // namespace lockstep

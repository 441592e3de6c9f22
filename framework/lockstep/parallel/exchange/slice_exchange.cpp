#include "lockstep/parallel/exchange/slice_exchange.h"

#include <algorithm>
#include <array>

namespace lockstep {

SliceExchange::SliceExchange(Transport& transport, const Domains& domains, const DomainTree& tree, int slice, int tag)
    : transport_(transport), domains_(domains), tree_(tree), slice_(slice), tag_(tag) {}

// From the next domain on, so that not all send to the first.
template <class Each>
void SliceExchange::for_each_peer(const Each& each) {
  for (int step = 1; step < domains_.count(); ++step) {
    const int domain = (domains_.mine() + step) % domains_.count();
    each(domain, domains_.driver(domain, slice_));
  }
}

void SliceExchange::start(const Work& work) {
  element_ = work.element;
  op_ = work.op;
  n_ = work.n;
  result_ = static_cast<std::byte*>(work.result);
  phase_ = Phase::Exchange;
  const Range mine = part(domains_.mine());
  const std::int64_t width = size_of(element_);
  const auto line = static_cast<std::size_t>((mine.size() * width + 63) / 64 * 64);
  if (tree_.order.size() * line > capacity_) {
    // What was there stays with the transport: by doubling, all of it together is no more than the last.
    capacity_ = std::max(2 * capacity_, tree_.order.size() * line);
    memory_ = allocate_aligned(capacity_);
    transport_.keep(memory_);
  }
  operands_.clear();
  for (std::size_t i = 0; i < tree_.order.size(); ++i) {
    const DomainTree::Open& from = tree_.order[i];
    if (from.domain == domains_.mine()) {
      const void* open = work.open[static_cast<std::size_t>(from.index)];
      operands_.push_back(static_cast<const std::byte*>(open) + mine.begin * width);
      continue;
    }
    std::byte* into = memory_.get() + i * line;
    operands_.push_back(into);
    if (mine.size() == 0) continue;
    handles_.push_back(transport_.receive({into, mine.size(), element_}, domains_.driver(from.domain, slice_), tag_));
  }
  for_each_peer([&](int domain, int driver) {
    const Range theirs = part(domain);
    if (theirs.size() == 0) return;
    for (const void* open : work.open)
      handles_.push_back(
          transport_.send(comm::ConstBuffer(open, n_, element_).part(theirs.begin, theirs.size()), driver, tag_));
  });
}

bool SliceExchange::done() {
  if (phase_ == Phase::Idle) return true;
  if (!transport_.all_done(handles_)) return false;
  if (phase_ == Phase::Exchange) {
    gather();
    return false;
  }
  phase_ = Phase::Idle;
  return true;
}

void SliceExchange::gather() {
  phase_ = Phase::Gather;
  const comm::Buffer whole(result_, n_, element_);
  const Range mine = part(domains_.mine());
  for_each_peer([&](int domain, int driver) {
    const Range theirs = part(domain);
    if (theirs.size() > 0)
      handles_.push_back(transport_.receive(whole.part(theirs.begin, theirs.size()), driver, tag_ + 1));
  });
  if (mine.size() == 0) return;
  const std::array<void*, 1> outs{whole.part(mine.begin, mine.size()).data};
  tree_reduce({.element = element_, .op = op_, .merges = tree_.to_root}, operands_, mine.size(), outs);
  for_each_peer([&](int, int driver) {
    handles_.push_back(transport_.send(whole.part(mine.begin, mine.size()), driver, tag_ + 1));
  });
}

}  // namespace lockstep

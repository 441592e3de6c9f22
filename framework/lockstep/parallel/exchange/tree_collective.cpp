#include "lockstep/parallel/exchange/tree_collective.h"

#include <algorithm>

#include "lockstep/core/backoff.h"

namespace lockstep {
namespace {

constexpr int kTag = 0;

// The ranks below one node of the tree.
struct Half {
  int first, count;
};

Half half(int level, int index, int size) {
  const int first = index << level;
  return {first, std::clamp(size - first, 0, 1 << level)};
}

}  // namespace

void TreeCollective::allreduce_sum(std::span<double> values) {
  auto& [sent, received] = *messages_;
  if (received.size() < values.size()) {
    sent.resize(values.size());
    received.resize(values.size());
  }
  for (int level = 0; 1 << level < comm_.size(); ++level) {
    if (half(level, (comm_.rank() >> level) ^ 1, comm_.size()).count == 0) continue;
    std::ranges::copy(values, sent.begin());
    exchange(level, values.size());
    // left + right is right + left, bit for bit
    std::ranges::transform(values, std::span(received).first(values.size()), values.begin(), std::plus<>());
  }
}

// Each rank has its half's sum; where the other half has fewer ranks, one of them serves several of this one.
void TreeCollective::exchange(int level, std::size_t count) {
  const int index = comm_.rank() >> level;
  const Half here = half(level, index, comm_.size()), there = half(level, index ^ 1, comm_.size());
  const int place = comm_.rank() - here.first;
  handles_.clear();
  handles_.push_back(
      transport_.receive(std::span(messages_->received).first(count), there.first + place % there.count, kTag));
  for (int i = place; i < there.count; i += here.count) {
    handles_.push_back(transport_.send(std::span(messages_->sent).first(count), there.first + i, kTag));
  }
  for (Backoff wait; !transport_.all_done(handles_); wait.pause()) work_();
}

}  // namespace lockstep

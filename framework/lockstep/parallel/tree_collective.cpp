#include "lockstep/parallel/tree_collective.h"

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
  if (received_.size() < values.size()) received_.resize(values.size());
  const std::span theirs = std::span(received_).first(values.size());
  for (int level = 0; 1 << level < comm_.size(); ++level) {
    if (half(level, (comm_.rank() >> level) ^ 1, comm_.size()).count == 0) continue;
    exchange(level, values, theirs);
    std::ranges::transform(values, theirs, values.begin(), std::plus<>());  // left + right is right + left, bit for bit
  }
}

// Each rank has its half's sum; where the other half has fewer ranks, one of them serves several of this one.
void TreeCollective::exchange(int level, std::span<const double> mine, std::span<double> theirs) {
  const int index = comm_.rank() >> level;
  const Half here = half(level, index, comm_.size()), there = half(level, index ^ 1, comm_.size());
  const int place = comm_.rank() - here.first;
  tickets_.clear();
  tickets_.push_back(transport_.receive(theirs, there.first + place % there.count, kTag));
  for (int i = place; i < there.count; i += here.count) {
    tickets_.push_back(transport_.send(mine, there.first + i, kTag));
  }
  for (Backoff wait; !transport_.all_done(tickets_); wait.pause()) work_();
}

}  // namespace lockstep

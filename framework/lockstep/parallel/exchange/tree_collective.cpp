#include "lockstep/parallel/exchange/tree_collective.h"

#include <algorithm>

#include "lockstep/core/backoff.h"
#include "lockstep/parallel/exchange/path_choice.h"

namespace lockstep::parallel {
namespace {

constexpr std::int64_t kCacheLine = 64;  // elements: parts begin at cache lines

}  // namespace

TreeCollective::TreeCollective(const comm::Communicator& comm)
    : comm_(comm.duplicate()),
      domains_(Domains::single_ranks(comm_.rank(), comm_.size())),
      tree_(WorldLayout(comm_.rank(), comm_.size(), 0), domains_),
      transport_(comm_),
      exchange_(transport_, domains_, tree_) {}

void TreeCollective::allreduce_sum(std::span<double> values) {
  if (comm_.size() == 1 || values.empty()) return;
  reserve(2 * whole_lines(values.size_bytes()));
  auto* const mine = reinterpret_cast<double*>(memory_.get());
  auto* const sum = reinterpret_cast<double*>(memory_.get() + whole_lines(values.size_bytes()));
  std::ranges::copy(values, mine);
  const auto count = std::ssize(values);
  SliceWork& work = exchange_.work();
  work.element = comm::Element::F64;
  const bool replicated = takes_one_round(domains_, static_cast<std::int64_t>(values.size_bytes()));
  work.result = replicated ? SliceWork::Result::Replicated : SliceWork::Result::Gathered;
  work.parts.clear();
  for (int d = 0; d < (replicated ? 1 : domains_.count()); ++d)
    work.parts.push_back(replicated ? Range{0, count} : part_in_blocks({0, count}, domains_.count(), d, kCacheLine));
  work.operands.assign(1, mine);
  work.outs.assign(1, sum);
  exchange_.start();
  for (Backoff wait; !exchange_.idle();) {
    if (!exchange_.advance()) {
      work_();
      wait.pause();
    }
  }
  std::copy_n(sum, values.size(), values.begin());
}

// The transport keeps the old memory. As sizes double, all old memory together is no more than the new.
void TreeCollective::reserve(std::size_t bytes) {
  if (bytes <= capacity_) return;
  capacity_ = std::max(2 * capacity_, bytes);
  memory_ = allocate_aligned(capacity_);
  transport_.keep(memory_);
}

}  // namespace lockstep::parallel

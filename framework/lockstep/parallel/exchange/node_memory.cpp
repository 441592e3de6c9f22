#include "lockstep/parallel/exchange/node_memory.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "lockstep/comm/agreement.h"
#include "lockstep/core/backoff.h"
#include "lockstep/core/error.h"

namespace lockstep::parallel {
namespace {

enum Flag : int { kFenced, kFenceFlags };
// A rank that failed after it reached the fence has sent its part of the barrier by this time, or never will.
constexpr std::chrono::seconds kLastMessage{10};

}  // namespace

NodeMemory::NodeMemory(const comm::Communicator& comm, Domains domains, bool share)
    : comm_(comm),
      domains_(std::move(domains)),
      local_(comm.split(domains_.mine(), comm.rank())),
      leaders_(comm.split(domains_.local_rank() == 0 ? 0 : 1, comm.rank())),
      share_(share && domains_.slices() > 1) {
  if (domains_.slices() == 1) return;
  const auto rows = segments(own(SharedFlags::bytes(kFenceFlags)));
  if (domains_.local_size() > 1) flags_ = std::make_unique<SharedFlags>(rows, domains_.local_rank());
}

NodeMemory::~NodeMemory() {
  if (comm_.has_abandoned()) comm::keep_for_ever(std::make_shared<std::vector<AlignedBuffer>>(std::move(private_)));
}

const comm::SharedWindow& NodeMemory::make_window(std::size_t bytes) {
  comm::agree(comm_, std::nullopt);
  comm::collectively(comm_, [&] { windows_.emplace_back(local_, bytes); });
  return windows_.back();
}

std::span<std::byte> NodeMemory::own(std::size_t bytes) { return make_window(bytes).segment(domains_.local_rank()); }

std::span<std::byte> NodeMemory::common(std::size_t bytes) {
  if (!share_) {
    private_.push_back(allocate_aligned(bytes));
    return {private_.back().get(), bytes};
  }
  // Ranks with different views of the same memory would read past its end. A rank that has failed before takes part in
  // this agreement, as in make_window().
  comm::agree(comm_, std::nullopt);
  comm::check_same(comm_, "the bytes of parameters, which follow from their layouts", std::to_string(bytes));
  return make_window(fills_common() ? bytes : 0).segment(0);
}

std::vector<std::span<std::byte>> NodeMemory::segments(std::span<std::byte> mine) const {
  const auto window = std::ranges::find_if(
      windows_, [&](const auto& w) { return w.segment(domains_.local_rank()).data() == mine.data(); });
  check(window != windows_.end(), "node memory", "the segment does not belong to this memory");
  std::vector<std::span<std::byte>> all;
  for (int r = 0; r < domains_.local_size(); ++r) all.push_back(window->segment(r));
  return all;
}

void NodeMemory::broadcast_common(std::span<std::byte> part) const {
  if (domains_.local_rank() == 0) leaders_.broadcast(part);
}

// The flags show which rank never comes. The barrier lets MPI make progress with messages for which other ranks may
// wait.
void NodeMemory::fence() {
  if (!flags_) return;
  comm::Request all = local_.ibarrier();  // a rank that cannot begin it has not reached the fence
  flags_->raise(kFenced, ++fences_);
  std::optional<std::chrono::steady_clock::time_point> here;  // the time at which all ranks had come
  for (Backoff wait; !all.test(); wait.pause()) {
    if (!flags_->all_reached(kFenced, fences_)) continue;
    const auto now = std::chrono::steady_clock::now();
    if (!here) here = now;
    if (now - *here > kLastMessage) flags_->check_alive();
  }
}

void NodeMemory::fail() {
  if (flags_) flags_->fail();
}

void NodeMemory::leave(std::int64_t updates, bool failing) {
  if (flags_) flags_->leave(domains_.rank, updates, failing);
}

}  // namespace lockstep::parallel

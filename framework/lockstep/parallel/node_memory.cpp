#include "lockstep/parallel/node_memory.h"

#include <algorithm>
#include <optional>
#include <string>

#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"

namespace lockstep {

NodeMemory::NodeMemory(const comm::Communicator& comm, Domains domains, bool share)
    : comm_(comm),
      domains_(std::move(domains)),
      local_(comm.split(domains_.mine(), comm.rank())),
      leaders_(comm.split(domains_.local_rank() == 0 ? 0 : 1, comm.rank())),
      share_(share && domains_.slices() > 1) {}

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
  // Ranks that see the same memory in different ways would read past its end.
  comm::check_same(comm_, "the bytes of parameters, which follow from their layouts", std::to_string(bytes));
  return make_window(fills_common() ? bytes : 0).segment(0);
}

std::vector<std::span<std::byte>> NodeMemory::segments(std::span<std::byte> mine) const {
  const auto window = std::ranges::find_if(
      windows_, [&](const auto& w) { return w.segment(domains_.local_rank()).data() == mine.data(); });
  check(window != windows_.end(), "node memory", "the segment is not of this memory");
  std::vector<std::span<std::byte>> all;
  for (int r = 0; r < domains_.local_size(); ++r) all.push_back(window->segment(r));
  return all;
}

void NodeMemory::broadcast_common(std::span<std::byte> part) const {
  if (domains_.local_rank() == 0) leaders_.broadcast(part);
}

void NodeMemory::fence() const {
  if (domains_.local_size() > 1) local_.barrier();
}

}  // namespace lockstep

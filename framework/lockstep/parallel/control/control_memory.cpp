#include "lockstep/parallel/control/control_memory.h"

#include "lockstep/core/error.h"

namespace lockstep::parallel {

std::size_t ControlMemory::bytes(const WorldLayout& world, const ControlSize& size) {
  std::size_t words = 0;
  for (const auto& of_rank : world.partials()) words += size.words + of_rank.size() * size.sums;
  return 2 * words * sizeof(std::uint64_t);
}

ControlMemory::ControlMemory(std::span<std::byte> memory, const Domains& domains, const WorldLayout& world,
                             const ControlSize& size)
    : words_(reinterpret_cast<std::uint64_t*>(memory.data()), memory.size() / sizeof(std::uint64_t)),
      blocks_(static_cast<std::size_t>(world.size)) {
  check(memory.size() >= bytes(world, size), "control block", "{} bytes of memory, expected {}", memory.size(),
        bytes(world, size));
  const auto partials = world.partials();
  std::int64_t at = 0;
  for (const std::vector<int>& ranks : domains.members) {
    const std::int64_t begin = at;
    for (int r : ranks) {
      const auto rank = static_cast<std::size_t>(r);
      blocks_[rank] = {at, at + static_cast<std::int64_t>(size.words + partials[rank].size() * size.sums)};
      at = blocks_[rank].end;
    }
    domains_.push_back({begin, at});
  }
}

}  // namespace lockstep::parallel

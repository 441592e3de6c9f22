// The steps after which the ranks of a group, which share the memory of their tables, have updated their rows: a rank
// reads rows when all ranks have reached the last step. One thread per rank.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "lockstep/core/shared_number.h"
#include "lockstep/parallel/exchange/node_memory.h"
#include "lockstep/parallel/tables/row_owners.h"

namespace lockstep::parallel {

class UpdatedSteps {
 public:
  // Collective; `memory` outlives this.
  UpdatedSteps(NodeMemory& memory, const RowOwners& owners) : me_(owners.me) {
    const auto is_alone = [](const std::vector<int>& group) { return group.size() == 1; };
    if (owners.sharded || std::ranges::all_of(owners.groups, is_alone)) return;  // the same on all ranks
    constexpr std::size_t kLine = 64;
    for (const std::span<std::byte> segment : memory.segments(memory.own(kLine)))
      numbers_.push_back(reinterpret_cast<SharedNumber<std::uint64_t>*>(segment.data()));
  }
  void set(std::uint64_t step) {
    if (!numbers_.empty()) numbers_[static_cast<std::size_t>(me_)]->store(step, std::memory_order_release);
  }
  bool all_reached(std::uint64_t step) const {
    return std::ranges::all_of(numbers_,
                               [&](const auto* number) { return number->load(std::memory_order_acquire) >= step; });
  }

 private:
  int me_;
  std::vector<SharedNumber<std::uint64_t>*> numbers_;  // by rank of the group; empty: no rank waits for another one
};

}  // namespace lockstep::parallel

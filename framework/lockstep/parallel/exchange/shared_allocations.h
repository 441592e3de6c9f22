// Memory for reductions in place: the ranks of a domain allocate together, and each sees the allocations of all. One
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/parallel/exchange/node_memory.h"

namespace lockstep::parallel {

class SharedAllocations {
 public:
  struct Address {                 // an address in one of the allocations
    std::int32_t allocation = -1;  // -1: other memory
    std::int64_t offset = 0;
  };

  // `memory` outlives this.
  SharedAllocations(NodeMemory& memory, int local_rank) : memory_(memory), local_rank_(local_rank) {}

  // Returns zero-filled memory. Collective; sizes may differ between ranks.
  std::span<std::byte> allocate(std::size_t bytes) {
    const std::span<std::byte> mine = memory_.own(bytes);
    by_local_rank_.push_back(memory_.segments(mine));
    return mine;
  }
  // The address of `bytes` bytes of this rank's memory.
  Address address_of(const void* data, std::int64_t bytes) const {
    const auto* begin = static_cast<const std::byte*>(data);
    for (std::size_t a = 0; a < by_local_rank_.size(); ++a) {
      const std::span<std::byte> own = by_local_rank_[a][static_cast<std::size_t>(local_rank_)];
      if (std::greater_equal<>()(begin, own.data()) && std::less_equal<>()(begin + bytes, own.data() + own.size()))
        return {static_cast<std::int32_t>(a), begin - own.data()};
    }
    return {};
  }
  // The pointer to this address in the memory of another local rank.
  std::byte* pointer(int local_rank, const Address& address) const {
    return by_local_rank_[static_cast<std::size_t>(address.allocation)][static_cast<std::size_t>(local_rank)].data() +
           address.offset;
  }

 private:
  NodeMemory& memory_;
  int local_rank_;
  std::vector<std::vector<std::span<std::byte>>> by_local_rank_;  // by allocation
};

}  // namespace lockstep::parallel

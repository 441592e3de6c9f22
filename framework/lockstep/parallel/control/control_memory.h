// The layout of the control blocks of all ranks in memory that the ranks of a domain see: for each rank its u64 words,
// then its open partial sums (f64 bits), domain after domain, so that the blocks of a domain are one message. There are
// two sets, as a rank may post the block of the next step while other ranks still read that of this step. A view; the
// caller owns the memory, which is zero at first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/parallel/tree/domains.h"
#include "lockstep/parallel/tree/world_layout.h"

namespace lockstep::parallel {

struct ControlSize {
  std::size_t sums = 0, words = 0;
};

class ControlMemory {
 public:
  static std::size_t bytes(const WorldLayout& world, const ControlSize& size);
  // Throws Error if `memory` has fewer than bytes().
  ControlMemory(std::span<std::byte> memory, const Domains& domains, const WorldLayout& world, const ControlSize& size);

  int ranks() const { return static_cast<int>(blocks_.size()); }
  std::span<std::uint64_t> block(int rank, std::uint32_t step) const {
    return at(blocks_[static_cast<std::size_t>(rank)], step);
  }
  std::span<std::uint64_t> blocks_of(int domain, std::uint32_t step) const {
    return at(domains_[static_cast<std::size_t>(domain)], step);
  }

 private:
  std::span<std::uint64_t> at(Range words, std::uint32_t step) const {
    const std::size_t set = step % 2 * (words_.size() / 2);
    return words_.subspan(set + static_cast<std::size_t>(words.begin), static_cast<std::size_t>(words.size()));
  }

  std::span<std::uint64_t> words_;
  std::vector<Range> blocks_, domains_;  // by rank, by domain: its words in a set
};

}  // namespace lockstep::parallel

#include "lockstep/parallel/guard/memory_examination.h"

#include <algorithm>

#include "lockstep/core/format.h"

namespace lockstep::parallel {
namespace {

constexpr std::uint64_t kLate = std::uint64_t{1} << 63;
constexpr std::int64_t kGathered = 4096;  // blocks whose checksums are compared at once

}  // namespace

std::uint64_t damage_word(std::int64_t block) {
  return block == MemoryChecksums::kNone ? 0 : static_cast<std::uint64_t>(block) + 1;
}

std::uint64_t late_damage_word(std::int64_t block) { return damage_word(block) | kLate; }

bool is_late(std::uint64_t word) { return (word & kLate) != 0; }

std::int64_t block_of(std::uint64_t late_word) { return static_cast<std::int64_t>((late_word & ~kLate) - 1); }

// Gathers the checksums of some blocks at a time, to limit memory.
std::vector<DamagedBlock> compare_blocks(const comm::Communicator& comm, const MemoryChecksums& checksums,
                                         const CompareOptions& options) {
  std::vector<DamagedBlock> damaged;
  std::vector<BlockCopy> copies;
  const auto ranks = static_cast<std::size_t>(comm.size());
  for (std::int64_t begin = 0; begin < checksums.blocks(); begin += kGathered) {
    const auto at = static_cast<std::size_t>(begin);
    const auto n = static_cast<std::size_t>(std::min(kGathered, checksums.blocks() - begin));
    std::vector<std::uint64_t> current(n * ranks), recorded(n * ranks);
    comm.allgather(checksums.current().subspan(at, n), current);
    comm.allgather(checksums.recorded().subspan(at, n), recorded);
    if (!options.recorded) recorded = current;
    for (std::size_t i = 0; i < n; ++i) {
      const auto close = [&] {
        if (BallotResult result = elect(copies); !result.damaged.empty())
          damaged.push_back({begin + static_cast<std::int64_t>(i), std::move(result)});
        copies.clear();
      };
      for (std::size_t r = 0; r < ranks; ++r) {
        const std::size_t k = r * n + i;
        if (current[k] != 0) copies.push_back({static_cast<int>(r), recorded[k], current[k]});
        if (options.each_alone) close();
      }
      close();
    }
  }
  return damaged;
}

void restore(const comm::Communicator& comm, MemoryChecksums& checksums, std::int64_t block,
             const BallotResult& result) {
  std::vector<std::byte> content(checksums.bytes(block).size());
  if (comm.rank() == result.source) std::ranges::copy(checksums.bytes(block), content.begin());
  comm.broadcast(content, result.source);
  if (std::ranges::find(result.damaged, comm.rank()) != result.damaged.end()) checksums.write(block, content);
}

void DamageReport::add(int rank, std::int64_t block, int source) {
  const auto [at, is_first] = found_.try_emplace(rank, OfRank{block, source, 0});
  if (!is_first) ++at->second.more;
  if (source < 0) at->second.source = -1;
}

std::vector<MemoryDamage> DamageReport::take() const {
  std::vector<MemoryDamage> all;
  for (const auto& [rank, found] : found_) {
    all.push_back({rank, checksums_.describe(found.block, state_names_), found.source});
    if (found.more > 0) all.back().what += formatted(" and {} more blocks", found.more);
  }
  return all;
}

}  // namespace lockstep::parallel

// What MemoryGuard::examine() is made of: comparing the checksums of all ranks block by block, copying a block from a
// rank that has it right, and a report with one line for each rank. Also how a damaged block is told in a control word.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/parallel/control/ballot.h"
#include "lockstep/parallel/guard/memory_checksums.h"

namespace lockstep::parallel {

struct MemoryDamage;

// A word of the control block: 0, or a damaged block. Late: it was found when this step's gradients may have used it.
std::uint64_t damage_word(std::int64_t block);
std::uint64_t late_damage_word(std::int64_t block);
bool is_late(std::uint64_t word);
std::int64_t block_of(std::uint64_t late_word);

struct DamagedBlock {
  std::int64_t block;
  BallotResult result;
};

struct CompareOptions {
  bool recorded = true;     // recorded checksums are of the present values; else only copies are compared
  bool each_alone = false;  // no two ranks need have the same content
};
// Collective, after checksums.verify(): the blocks of which some copy is wrong, alike on all ranks.
std::vector<DamagedBlock> compare_blocks(const comm::Communicator& comm, const MemoryChecksums& checksums,
                                         const CompareOptions& options);
// Collective: a block's content from a rank that has it right (result.source) to those that do not.
void restore(const comm::Communicator& comm, MemoryChecksums& checksums, std::int64_t block,
             const BallotResult& result);

// Damage by rank: the first block of each by name, and how many more there are.
class DamageReport {
 public:
  // Both outlive the report.
  DamageReport(const MemoryChecksums& checksums, std::span<const std::string_view> state_names)
      : checksums_(checksums), state_names_(state_names) {}
  void add(int rank, std::int64_t block, int source);  // source: a rank that has it right; -1: none
  std::vector<MemoryDamage> take() const;              // by rank

 private:
  struct OfRank {
    std::int64_t block;
    int source, more;
  };
  const MemoryChecksums& checksums_;
  std::span<const std::string_view> state_names_;
  std::map<int, OfRank> found_;
};

}  // namespace lockstep::parallel

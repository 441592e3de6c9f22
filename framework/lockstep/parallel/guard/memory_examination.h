// The parts of MemoryGuard::examine(): the comparison of the checksums of all ranks, block by block; the copy of a
// block from a rank with the right content; a report with one line per rank. Also the encoding of a damaged block in a
// control word.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/parallel/control/ballot.h"
#include "lockstep/parallel/guard/memory_checksums.h"
#include "lockstep/parallel/guard/memory_damage.h"

namespace lockstep::parallel {

// A word of the control block: 0, or a damaged block. A late word means that this step's gradients may depend on the
// damaged block.
std::uint64_t damage_word(std::int64_t block);
std::uint64_t late_damage_word(std::int64_t block);
bool is_late(std::uint64_t word);
std::int64_t block_of(std::uint64_t late_word);

struct DamagedBlock {
  std::int64_t block;
  BallotResult result;
};

struct CompareOptions {
  // Recorded checksums belong to the present values, on all ranks; if not, only copies are compared. Equal on all
  // ranks.
  bool recorded = true;
  bool each_alone = false;  // ranks may have different content
};
// Returns the blocks with a wrong copy, alike on all ranks. Collective; call checksums.verify() before.
std::vector<DamagedBlock> compare_blocks(const comm::Communicator& comm, const MemoryChecksums& checksums,
                                         const CompareOptions& options);
// Copies the content of a block from a rank with the right content (result.source) to the ranks with wrong content.
// Collective.
void restore(const comm::Communicator& comm, MemoryChecksums& checksums, std::int64_t block,
             const BallotResult& result);

// A report of damage by rank: the name of the first damaged block, and the number of further ones.
class DamageReport {
 public:
  // Both outlive the report.
  DamageReport(const MemoryChecksums& checksums, std::span<const std::string_view> state_names)
      : checksums_(checksums), state_names_(state_names) {}
  void add(int rank, std::int64_t block, int source);  // source: a rank with the right content; -1: none
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

// Finds out whether parameters and optimizer state in memory are what was written there, between steps and during one:
// by checksums that the rank that writes a block records, and by comparing the copies of different ranks. What it finds
// travels in the control block, so all ranks decide alike. Without an interval for either it does nothing. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/parallel/control/step_sums.h"
#include "lockstep/parallel/guard/memory_checksums.h"

namespace lockstep::parallel {

// Something that was found wrong in a rank's memory.
struct MemoryDamage {
  int rank;
  std::string what;
  int source = -1;  // a rank that has the right content; -1: none is known
};

struct MemoryGuardOptions {
  std::int64_t verify_every = 0;   // updates between looks at the checksums of what this rank writes; 0: never
  std::int64_t compare_every = 0;  // updates between comparisons of copies; 0: never
  // By rank, the number of its copy of the parameters: ranks that share one have the same number.
  std::vector<int> copy_of = {};
  bool copies_have_states = true;  // each copy of the parameters comes with all optimizer state
  bool replicas_differ = false;    // each rank updates for itself: no two copies need be equal
  // Of the optimizer's states, for messages.
  std::vector<std::string_view> state_names = {};
};

class MemoryGuard {
 public:
  // `parts`: see MemoryChecksums. The store outlives this.
  MemoryGuard(plan::ParameterStore& store, std::vector<std::vector<MemoryChecksums::Part>> parts,
              MemoryGuardOptions options);

  // --- in a step, in this order
  // Before this rank's control block leaves, as no rank updates anything before that: what this rank says of its
  // memory.
  MemoryWords look(std::int64_t update);
  bool is_damaged(const StepSums& sums) const;  // whether any rank's words say so; alike on all ranks
  void verify_before_update(std::size_t bucket, std::span<const Range> ranges);
  void record(std::size_t bucket, std::span<const Range> ranges);  // they were updated
  void end_step(bool applied);

  // --- between steps
  // The parameters that every rank holds for itself have changed on purpose; or all may have.
  void own_values_moved() { recorded_version_ = recorded_version_ > 0 ? store_.version() : 0; }
  void forget() { recorded_version_ = 0; }
  bool verifies() const { return checksums_ != nullptr && options_.verify_every > 0; }
  bool is_intact();  // whether this rank's memory has its checksums now; true if it does not verify
  // Collective, after a fence, and a fence follows: what is damaged in all ranks' memory, by checksums and comparison
  // of copies, at most one entry for each rank. Where a rank has the right content it is copied from there if `repair`.
  // Afterwards the content of memory counts as right. Requires an interval.
  std::vector<MemoryDamage> examine(const comm::Communicator& comm, const StepSums& sums, bool repair);

 private:
  bool is_due(std::int64_t every, std::int64_t update) const { return every > 0 && update % every == 0; }
  bool verifies_now() const { return is_due(options_.verify_every, update_); }
  bool verifies_next() const { return is_due(options_.verify_every, update_ + 1); }
  bool compares_now() const { return !options_.replicas_differ && is_due(options_.compare_every, update_); }
  bool copies_differ(const StepSums& sums) const;
  void flip_wanted_bits() const;

  plan::ParameterStore& store_;
  MemoryGuardOptions options_;
  std::unique_ptr<MemoryChecksums> checksums_;  // null without an interval
  std::int64_t update_ = 0;                     // number of the step's update
  std::uint64_t recorded_version_ = 0;          // of the values whose checksums are recorded; 0: none
  std::uint64_t late_damage_ = 0;               // found too late for this step's words: for the next one's
};

}  // namespace lockstep::parallel

// Checks whether parameters and optimizer state in memory still have the content that was written, between steps and
// during a step: by checksums, which the rank that writes a block records, and by comparing the copies of different
// ranks. Findings travel in the control block, so all ranks decide alike. With both intervals at 0 it does nothing. One
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/parallel/control/step_sums.h"
#include "lockstep/parallel/guard/memory_checksums.h"
#include "lockstep/parallel/guard/memory_damage.h"

namespace lockstep::parallel {

struct MemoryGuardOptions {
  std::int64_t verify_every = 0;   // updates between two verifications of the checksums of this rank's parts; 0: never
  std::int64_t compare_every = 0;  // updates between two comparisons of copies; 0: never
  // By rank, the number of its copy of the parameters: ranks that share one have the same number.
  std::vector<int> copy_of = {};
  bool copies_have_states = true;  // each copy of the parameters has all optimizer state with it
  bool replicas_differ = false;    // each rank updates its own copy: copies may differ
  // The names of the optimizer's states, for messages.
  std::vector<std::string_view> state_names = {};
};

class MemoryGuard {
 public:
  // `parts`: see MemoryChecksums. The store outlives the guard.
  MemoryGuard(plan::ParameterStore& store, std::vector<std::vector<MemoryChecksums::Part>> parts,
              MemoryGuardOptions options);

  // --- in a step, in this order
  // Returns the words about this rank's memory for its control block. No rank updates anything before the control block
  // is sent.
  MemoryWords look(std::int64_t update);
  bool is_damaged(const StepSums& sums) const;  // whether the words of any rank report damage; alike on all ranks
  void verify_before_update(std::size_t bucket, std::span<const Range> ranges);
  void record(std::size_t bucket, std::span<const Range> ranges);  // after an update
  void end_step(bool applied);

  // --- between steps
  // The private copies of parameters have changed on purpose; or any parameter may have.
  void own_values_moved() { recorded_version_ = recorded_version_ > 0 ? store_.version() : 0; }
  void forget() { recorded_version_ = 0; }
  // Around a change of values or states on purpose by the ranks that record them: damage before it is reported in the
  // next step as found too late, and the new content counts as right.
  void before_change();
  void after_change();
  // Around an exchange of values and states that a second one undoes, with all bits: what is recorded stays valid, so
  // damage before, between and after is found. Steps and other changes may not come between.
  void begin_detour() { on_detour_ = is_recorded(); }
  void end_detour() {
    if (std::exchange(on_detour_, false)) recorded_version_ = store_.version();
  }
  bool verifies() const { return checksums_ != nullptr && options_.verify_every > 0; }
  bool is_intact();  // whether this rank's memory has its recorded checksums; true if it does not verify
  // Returns the damage in the memory of all ranks, found by checksums and by comparison of copies, at most one entry
  // per rank. With `repair`, damaged blocks are copied from a rank with the right content, if there is one. Afterwards
  // the content of memory counts as right. Collective, between two fences; requires an interval.
  std::vector<MemoryDamage> examine(const comm::Communicator& comm, const StepSums& sums, bool repair);

 private:
  bool is_due(std::int64_t every, std::int64_t update) const { return every > 0 && update % every == 0; }
  bool verifies_now() const { return is_due(options_.verify_every, update_); }
  bool verifies_next() const { return is_due(options_.verify_every, update_ + 1); }
  bool compares_now() const { return !options_.replicas_differ && is_due(options_.compare_every, update_); }
  bool is_recorded() const { return verifies() && recorded_version_ == store_.version(); }
  bool copies_differ(const StepSums& sums) const;
  void flip_wanted_bits() const;

  plan::ParameterStore& store_;
  MemoryGuardOptions options_;
  std::unique_ptr<MemoryChecksums> checksums_;  // null without an interval
  std::int64_t update_ = 0;                     // number of the step's update
  std::uint64_t recorded_version_ = 0;          // version of the values whose checksums are recorded; 0: none
  // Within these functions, and between verify_before_update() and record(): what was recorded before is to be kept.
  bool is_changing_ = false, on_detour_ = false, is_updating_ = false;
  std::uint64_t late_damage_ = 0;  // damage found too late for the words of this step; reported in the next
};

}  // namespace lockstep::parallel

#include "lockstep/parallel/guard/memory_guard.h"

#include <algorithm>
#include <map>
#include <utility>

#include "lockstep/core/fault_point.h"
#include "lockstep/parallel/guard/memory_examination.h"

namespace lockstep::parallel {

MemoryGuard::MemoryGuard(plan::ParameterStore& store, std::vector<std::vector<MemoryChecksums::Part>> parts,
                         MemoryGuardOptions options)
    : store_(store), options_(std::move(options)) {
  if (options_.verify_every > 0 || options_.compare_every > 0)
    checksums_ = std::make_unique<MemoryChecksums>(store, std::move(parts));
}

MemoryWords MemoryGuard::look(std::int64_t update) {
  update_ = update;
  MemoryWords words{.damage = std::exchange(late_damage_, 0)};
  if (!checksums_ || (!verifies_now() && !compares_now())) return words;
  // Values were written on purpose, or their checksums were not recorded: the present content counts as right.
  if (verifies_now() && recorded_version_ != store_.version()) {
    checksums_->record();
    recorded_version_ = store_.version();
  }
  const std::int64_t damaged = checksums_->verify();
  if (verifies_now() && words.damage == 0) words.damage = damage_word(damaged);
  words.digest = checksums_->digest(options_.copies_have_states);
  words.own = checksums_->own_digest();
  if (fault_wanted("weights.flip.late", update_)) checksums_->flip(0);
  return words;
}

bool MemoryGuard::copies_differ(const StepSums& sums) const {
  std::map<int, std::uint64_t> copies;
  bool differ = false;
  for (int r = 0; r < sums.ranks(); ++r) {
    const MemoryWords words = sums.memory_of(r);
    copies[options_.copy_of[static_cast<std::size_t>(r)]] += words.digest;
    differ = differ || words.own != sums.memory_of(0).own;
  }
  return differ || std::ranges::any_of(copies, [&](const auto& c) { return c.second != copies.begin()->second; });
}

bool MemoryGuard::is_damaged(const StepSums& sums) const {
  bool damaged = compares_now() && copies_differ(sums);
  for (int r = 0; r < sums.ranks(); ++r) damaged = damaged || sums.memory_of(r).damage != 0;
  return damaged;
}

// Memory may also change after the control block was sent; other ranks may then have begun to apply this step.
void MemoryGuard::verify_before_update(std::size_t bucket, std::span<const Range> ranges) {
  is_updating_ = is_recorded();
  if (!checksums_ || !verifies_now()) return;
  for (Range range : ranges) {
    const std::int64_t block = checksums_->verify(bucket, range);
    if (block != MemoryChecksums::kNone && late_damage_ == 0) late_damage_ = late_damage_word(block);
  }
}

void MemoryGuard::record(std::size_t bucket, std::span<const Range> ranges) {
  const bool was_recorded = std::exchange(is_updating_, false);
  if (!checksums_ || !verifies_next()) return;
  for (Range range : ranges) checksums_->record(bucket, range);
  // A late bucket, after end_step(): all else is as it was recorded.
  if (was_recorded) recorded_version_ = store_.version();
}

void MemoryGuard::end_step(bool applied) {
  if (!checksums_) return;
  const bool recorded = applied ? verifies_next() : verifies_now();
  recorded_version_ = recorded ? store_.version() : 0;
  flip_wanted_bits();
}

void MemoryGuard::flip_wanted_bits() const {
  if (fault_wanted("weights.flip", update_)) checksums_->flip(0);
  if (store_.options().optimizer_states > 0 && fault_wanted("state.flip", update_)) checksums_->flip(1);
}

void MemoryGuard::before_change() {
  is_changing_ = is_recorded();
  if (!is_changing_) return;
  const std::int64_t block = checksums_->verify();
  if (block != MemoryChecksums::kNone && late_damage_ == 0) late_damage_ = late_damage_word(block);
}

void MemoryGuard::after_change() {
  if (!std::exchange(is_changing_, false)) return;
  checksums_->record();
  recorded_version_ = store_.version();
}

bool MemoryGuard::is_intact() {
  if (!verifies()) return true;
  return late_damage_ == 0 && (recorded_version_ != store_.version() || checksums_->verify() == MemoryChecksums::kNone);
}

std::vector<MemoryDamage> MemoryGuard::examine(const comm::Communicator& comm, const StepSums& sums, bool repair) {
  check(checksums_ != nullptr, "memory guard",
        "there are no checksums to examine, expected an interval of verification or comparison");
  const std::vector<std::uint64_t> late = comm.allgather(late_damage_);  // not yet in a control block
  checksums_->verify();
  const bool recorded = recorded_version_ == store_.version();  // on this rank; all ranks must compare alike
  const std::vector<DamagedBlock> blocks =
      compare_blocks(comm, *checksums_,
                     {.recorded = comm.allreduce(std::int32_t{recorded}, comm::ReduceOp::Min) == 1,
                      .each_alone = options_.replicas_differ});
  DamageReport report(*checksums_, options_.state_names);
  for (const auto& [block, result] : blocks) {
    for (int rank : result.damaged) report.add(rank, block, result.source);
  }
  for (int r = 0; r < sums.ranks(); ++r) {
    for (const std::uint64_t word : {sums.memory_of(r).damage, late[static_cast<std::size_t>(r)]}) {
      if (is_late(word)) report.add(r, block_of(word), -1);
    }
  }
  if (repair) {
    for (const auto& [block, result] : blocks) {
      if (result.source >= 0) restore(comm, *checksums_, block, result);
    }
    // Also on ranks that share memory with one whose block was written: their plans hold what they computed from it.
    store_.values_changed();
  }
  checksums_->record();
  recorded_version_ = store_.version();
  late_damage_ = 0;
  return report.take();
}

}  // namespace lockstep::parallel

// What keeps a step from being applied: memory that is not what was written, and losses and gradients that are no good.
// All of it is decided alike on all ranks, from the control block and the sums of squares.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "lockstep/core/fault_point.h"
#include "lockstep/parallel/control/ballot.h"
#include "lockstep/parallel/gradient_engine.h"

namespace lockstep {
namespace {

constexpr std::uint64_t kLate = std::uint64_t{1} << 63;  // of a damage word: this step's gradients may have used it
constexpr std::int64_t kGathered = 4096;                 // blocks whose hashes are compared at once

std::uint64_t damage_word(std::int64_t block) {
  return block == Seals::kNone ? 0 : static_cast<std::uint64_t>(block) + 1;
}

}  // namespace

void GradientEngine::make_guards() {
  const EngineGuards& guards = options_.guards;
  if (guards.look_at_gradient()) guard_ = std::make_unique<GradientGuard>(store_, guards.gradient);
  if (guards.verify_every == 0 && guards.compare_every == 0) return;
  std::vector<std::vector<Seals::Part>> parts;
  for (std::size_t b = 0; b < store_.buckets().size(); ++b) {
    auto& of_bucket = parts.emplace_back();
    if (!owners_update_) of_bucket.push_back({{0, store_.buckets()[b].elements}, true});
    if (!owners_update_) continue;
    for (Range range : reducer_->owned(reduction_of(b))) of_bucket.push_back({range, true});
    for (Range range : reducer_->received(reduction_of(b))) of_bucket.push_back({range, false});
  }
  seals_ = std::make_unique<Seals>(store_, std::move(parts));
}

// The last thing before this rank's block leaves: no other rank updates anything before it has come.
void GradientEngine::look_at_memory() {
  const std::span<std::uint64_t> words = control_->words();
  words[kLossWord] = std::bit_cast<std::uint64_t>(local_loss_);
  words[kDamageWord] = std::exchange(late_damage_, 0);
  words[kDigestWord] = words[kOwnWord] = 0;
  if (!seals_ || (!verifies() && !compares())) return;
  // Somebody wrote values on purpose, or they were not sealed: they count from now on.
  if (verifies() && sealed_version_ != store_.version()) {
    seals_->seal();
    sealed_version_ = store_.version();
  }
  const std::int64_t damaged = seals_->verify();
  if (verifies() && words[kDamageWord] == 0) words[kDamageWord] = damage_word(damaged);
  words[kDigestWord] = seals_->digest(!shards_optimizer());
  words[kOwnWord] = seals_->own_digest();
  if (fault_wanted("weights.flip.late", update_.count)) seals_->flip(0);
}

bool GradientEngine::copies_differ() const {
  std::map<int, std::uint64_t> copies;
  bool differ = false;
  for (int r = 0; r < world_.size; ++r) {
    copies[owners_update_ ? memory_.domains().domain_of[static_cast<std::size_t>(r)] : r] +=
        control_->word(r, kDigestWord);
    differ = differ || control_->word(r, kOwnWord) != control_->word(0, kOwnWord);
  }
  return differ || std::ranges::any_of(copies, [&](const auto& c) { return c.second != copies.begin()->second; });
}

void GradientEngine::judge() {
  bool damaged = compares() && copies_differ();
  for (int r = 0; r < world_.size; ++r) damaged = damaged || control_->word(r, kDamageWord) != 0;
  if (damaged) {
    verdict_ = StepVerdict::Damaged;
  } else if (options_.guards.hold_loss && sums()[kSampleSum] > 0 && !std::isfinite(sums()[kLossSum])) {
    verdict_ = StepVerdict::BadLoss;
  }
}

void GradientEngine::judge_gradient() {
  finding_ = guard_->look(squares_, update_.gradient_scale);
  if (options_.guards.hold_gradient && finding_.level == GradientFinding::Level::Act) {
    verdict_ = StepVerdict::BadGradient;
  } else if (finding_.finite) {
    guard_->accept();
  }
}

// Since the control block left, memory may have changed too; then this step has begun to be applied elsewhere.
void GradientEngine::verify_before_update(std::size_t bucket, std::span<const Range> ranges) {
  if (!seals_ || !verifies()) return;
  for (Range range : ranges) {
    if (const std::int64_t block = seals_->verify(bucket, range); block != Seals::kNone && late_damage_ == 0)
      late_damage_ = damage_word(block) | kLate;
  }
}

void GradientEngine::seal(std::size_t bucket, std::span<const Range> ranges) {
  if (!seals_ || !applies() || !due(options_.guards.verify_every, 1)) return;
  for (Range range : ranges) seals_->seal(bucket, range);
}

void GradientEngine::note_seals() {
  if (!seals_) return;
  const bool fit = applies() ? due(options_.guards.verify_every, 1) : verifies();
  sealed_version_ = fit ? store_.version() : 0;
  inject_flips();
}

void GradientEngine::inject_flips() const {
  if (fault_wanted("weights.flip", update_.count)) seals_->flip(0);
  if (store_.options().optimizer_states > 0 && fault_wanted("state.flip", update_.count)) seals_->flip(1);
}

// Every block's hashes from everybody, some blocks at a time.
std::vector<GradientEngine::DamagedBlock> GradientEngine::compare_blocks() {
  std::vector<DamagedBlock> damaged;
  std::vector<BlockCopy> copies;
  const auto size = static_cast<std::size_t>(world_.size);
  for (std::int64_t begin = 0; begin < seals_->blocks(); begin += kGathered) {
    const auto at = static_cast<std::size_t>(begin);
    const auto n = static_cast<std::size_t>(std::min(kGathered, seals_->blocks() - begin));
    std::vector<std::uint64_t> current(n * size), sealed(n * size);
    gradient_comm_.allgather(seals_->current().subspan(at, n), current);
    gradient_comm_.allgather(seals_->sealed().subspan(at, n), sealed);
    if (sealed_version_ != store_.version()) sealed = current;  // there are no seals to go by
    for (std::size_t i = 0; i < n; ++i) {
      const auto close = [&] {
        if (BallotResult result = elect(copies); !result.damaged.empty())
          damaged.push_back({begin + static_cast<std::int64_t>(i), std::move(result)});
        copies.clear();
      };
      for (int r = 0; r < world_.size; ++r) {
        const std::size_t k = static_cast<std::size_t>(r) * n + i;
        if (current[k] != 0) copies.push_back({r, sealed[k], current[k]});
        if (keeps_gradients_local()) close();  // no two ranks need have the same
      }
      close();
    }
  }
  return damaged;
}

std::vector<MemoryDamage> GradientEngine::examine(bool repair) {
  fence();
  meet();
  const std::vector<std::uint64_t> late = gradient_comm_.allgather(late_damage_);  // in no control block yet
  seals_->verify();
  const std::vector<DamagedBlock> blocks = compare_blocks();
  std::map<int, MemoryDamage> found;  // by rank
  std::map<int, int> more;
  const auto add = [&](int rank, std::int64_t block, int source) {
    const auto [at, is_first] =
        found.try_emplace(rank, MemoryDamage{rank, seals_->describe(block, updater_.rule().states()), source});
    if (!is_first) ++more[rank];
    if (source < 0) at->second.source = -1;
  };
  for (const auto& [block, result] : blocks) {
    for (int rank : result.damaged) add(rank, block, result.source);
  }
  for (int r = 0; r < world_.size; ++r) {
    for (const std::uint64_t word : {control_->word(r, kDamageWord), late[static_cast<std::size_t>(r)]}) {
      if ((word & kLate) != 0) add(r, static_cast<std::int64_t>((word & ~kLate) - 1), -1);
    }
  }
  if (repair) {
    for (const auto& [block, result] : blocks) {
      if (result.source >= 0) restore(block, result);
    }
  }
  seals_->seal();
  sealed_version_ = store_.version();
  late_damage_ = 0;
  fence();
  std::vector<MemoryDamage> all;
  for (auto& [rank, damage] : found) {
    if (more[rank] > 0) damage.what += fmt::format(" and {} more blocks", more[rank]);
    all.push_back(std::move(damage));
  }
  return all;
}

// From a rank that has it right to those that do not.
void GradientEngine::restore(std::int64_t block, const BallotResult& result) {
  std::vector<std::byte> content(seals_->bytes(block).size());
  if (world_.rank == result.source) std::ranges::copy(seals_->bytes(block), content.begin());
  gradient_comm_.broadcast(content, result.source);
  if (std::ranges::find(result.damaged, world_.rank) != result.damaged.end()) seals_->write(block, content);
}

bool GradientEngine::intact() {
  if (!seals_ || options_.guards.verify_every == 0) return true;
  settle();  // or buckets are not updated and sealed yet
  const bool fits = late_damage_ == 0 && (sealed_version_ != store_.version() || seals_->verify() == Seals::kNone);
  meet();
  return gradient_comm_.allreduce(std::int32_t{fits}, comm::ReduceOp::Min) == 1;
}

}  // namespace lockstep

#include "lockstep/train/guard/memory_recovery.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/core/log.h"
#include "lockstep/train/guard/untrusted_error.h"

namespace lockstep::train {
namespace {

constexpr int kAttempts = 3;   // limit of attempts at a step with damaged memory
constexpr int kRollBacks = 3;  // limit of rollbacks without progress

}  // namespace

// Examines memory, repairs it if the options allow that and it is possible, and adds the findings to `text`.
bool MemoryRecovery::is_repaired(std::string& text) {
  const bool wanted = on_mismatch_ == OnMismatch::Repair;
  const std::vector<parallel::MemoryDamage> damages = engine_->examine(wanted);
  bool repairable = true;
  for (const parallel::MemoryDamage& d : damages) {
    text += fmt::format("{}{}: {} has changed in memory", text.empty() ? "" : "; ", name_of(comm_, d.rank), d.what);
    if (d.source >= 0) text += fmt::format(" ({} has a correct copy)", name_of(comm_, d.source));
    repairable = repairable && d.source >= 0;
  }
  if (damages.empty()) text = "checksum mismatch, not reproducible on re-check";
  if (comm_.is_root()) log()->error("memory: after update {}: {}", state_.updates(), text);
  for (const parallel::MemoryDamage& d : damages) suspects_.suspect(d.rank, 1);
  return wanted && repairable;
}

// Returns whether to run the step again.
bool MemoryRecovery::recover(int attempts) {
  std::string text;
  const bool repaired = is_repaired(text);
  if (repaired && attempts < kAttempts) {
    if (comm_.is_root()) log()->warn("memory: repaired from a copy; update {} is repeated", state_.updates() + 1);
    return true;
  }
  roll_back_or_throw(std::move(text));
  return false;
}

void MemoryRecovery::roll_back_or_throw(std::string text) {
  if (state_.updates() > furthest_) rolled_back_ = 0;
  furthest_ = std::max(furthest_, state_.updates());
  if (++rolled_back_ > kRollBacks) text += fmt::format("; rolled back {} times without progress", kRollBacks);
  const bool goes_back = on_mismatch_ != OnMismatch::Stop && rolled_back_ <= kRollBacks;
  if (!goes_back || !roll_back_ || !roll_back_())
    throw UntrustedError(fmt::format("[memory] after update {}: {}", state_.updates(), text));
  if (comm_.is_root()) log()->warn("memory: rolled back to update {}", state_.updates());
}

bool MemoryRecovery::verify() {
  if (engine_->intact()) return true;
  std::string text;
  if (is_repaired(text)) {
    if (comm_.is_root()) log()->warn("memory: repaired from a copy");
    return true;
  }
  roll_back_or_throw(std::move(text));
  return false;
}

void MemoryRecovery::require_intact() {
  if (engine_->intact()) return;
  std::string text;
  if (!is_repaired(text)) throw UntrustedError(fmt::format("[memory] after update {}: {}", state_.updates(), text));
}

}  // namespace lockstep::train

#include "lockstep/train/guard/gradient_policy.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "lockstep/core/log.h"
#include "lockstep/train/guard/untrusted_error.h"

namespace lockstep::train {
namespace {

constexpr std::int64_t kSkipsInARow = 10;  // after so many skipped updates in a row, the run stops

}  // namespace

bool GradientPolicy::refuse(const LocalBatch& local, std::int64_t update, int attempts) {
  const bool of_loss = engine_->verdict() == parallel::StepVerdict::BadLoss;
  const parallel::GradientFinding finding = engine_->gradient_finding();
  const double loss = engine_->sums()[parallel::kLossSum];
  std::string text =
      of_loss ? (std::isnan(loss) ? "the loss is nan" : fmt::format("the loss is {}", loss)) : finding.str();
  if (of_loss || !finding.finite) {
    std::vector<int> guilty;
    for (int r = 0; r < comm_.size(); ++r) {
      if (!std::isfinite(engine_->loss_of(r))) guilty.push_back(r);
    }
    const std::string found = inspection_.compare_findings(local, update - 1);
    if (found.empty() && attempts == 0) {
      if (comm_.is_root())
        log()->error("guard: update {}: {}; all values are finite when computed again, so the update is repeated",
                     update, text);
      for (int rank : guilty) suspects_.suspect(rank, Suspects::kEnough);
      return true;
    }
    text += found;
  } else {
    text += inspection_.find_spike(local, update - 1, finding.parameter);
    text += kDivergenceAdvice;
  }
  if (action_ != GuardAction::Skip) throw UntrustedError(fmt::format("[guard] update {}: {}", update, text));
  ++skipped_;
  if (++skipped_in_a_row_ > kSkipsInARow)
    throw UntrustedError(
        fmt::format("[guard] update {}: {}; the {} updates before it were skipped", update, text, kSkipsInARow));
  if (comm_.is_root()) log()->warn("guard: update {} is skipped, number {} of this run: {}", update, skipped_, text);
  return false;
}

// Warns about a step that was applied, at growing intervals, because a finding may repeat in many steps.
void GradientPolicy::accept(std::int64_t update) {
  skipped_in_a_row_ = 0;
  const double loss = engine_->sums()[parallel::kLossSum];
  const parallel::GradientFinding& finding = engine_->gradient_finding();
  const bool bad_loss = engine_->sums()[parallel::kSampleSum] > 0 && !std::isfinite(loss);
  if (!bad_loss && finding.level == parallel::GradientFinding::Level::Fine) return;
  if (!std::has_single_bit(static_cast<std::uint64_t>(++findings_)) || !comm_.is_root()) return;
  std::string ranks;
  for (int r = 0; bad_loss && r < comm_.size(); ++r) {
    if (!std::isfinite(engine_->loss_of(r)))
      ranks += fmt::format("{}{}", ranks.empty() ? " of " : ", ", name_of(comm_, r));
  }
  log()->warn("guard: update {}: {} (warning {}){}", update,
              bad_loss ? fmt::format("the loss{} is not finite", ranks) : finding.str(), findings_,
              finding.level == parallel::GradientFinding::Level::Warn && !bad_loss ? "" : kDivergenceAdvice);
}

}  // namespace lockstep::train

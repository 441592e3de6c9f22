#include "lockstep/train/callbacks/log_rank_loss.h"

#include <fmt/format.h>

namespace lockstep::train {

std::string rank_loss_text(std::int64_t epoch, std::int64_t step, const OwnTotals& own,
                           const ProgressOptions& options) {
  const std::string head = position_text(epoch, step, options);
  if (own.samples == 0) return head + "  own loss: no samples on this rank";
  return fmt::format("{}  own loss {:.5g}  {} sample{}", head, own.loss(), own.samples, own.samples == 1 ? "" : "s");
}

void LogRankLoss::after_step(const StepEvent& event, Orders& /*orders*/) {
  if (options_.log_every == 0 || event.step % options_.log_every != 0) return;
  log_.to_file(rank_loss_text(event.epoch, event.step, trainer_.own_totals(), options_));
}

}  // namespace lockstep::train

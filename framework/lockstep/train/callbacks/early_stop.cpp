#include "lockstep/train/callbacks/early_stop.h"

#include <fmt/format.h>

namespace lockstep::train {

void EarlyStop::after_evaluation(const EvaluationEvent& event, Orders& orders) {
  if (patience_ == 0 || !event.scheduled || !event.totals.whole) return;
  if (event.totals.loss < lowest_) {  // false for a NaN
    lowest_ = event.totals.loss;
    without_progress_ = 0;
    return;
  }
  if (++without_progress_ < patience_) return;
  orders.finish(fmt::format("{} evaluations without a loss below {:.4g}", without_progress_, lowest_));
}

}  // namespace lockstep::train

#include "lockstep/train/callbacks/early_stop.h"

#include <fmt/format.h>

#include <cmath>

#include "lockstep/core/error.h"

namespace lockstep::train {
namespace {

constexpr std::int64_t kMostEvaluations = std::int64_t{1} << 62;

}  // namespace

void EarlyStop::after_evaluation(const EvaluationEvent& event, Orders& orders) {
  if (patience_ == 0 || !event.scheduled || !event.totals.whole) return;
  if (event.totals.loss < lowest_) {  // false for a NaN
    lowest_ = event.totals.loss;
    without_progress_ = 0;
    return;
  }
  ++without_progress_;
  if (is_over()) orders.finish(reason());
}

// After a resume; before that, a run that is over has ended.
void EarlyStop::make_up(const EpochEvent& /*event*/, Orders& orders) {
  if (is_over()) orders.finish(reason() + " before this start; a --patience above that continues the run");
}

std::string EarlyStop::reason() const {
  return fmt::format("{} evaluations without a loss below {:.4g}", without_progress_, lowest_);
}

void EarlyStop::save_state(CallbackState& state) {
  state.set("lowest", lowest_);
  state.set("without_progress", without_progress_);
}

void EarlyStop::load_state(const CallbackState& state) {
  lowest_ = state.number("lowest");
  without_progress_ = state.integer("without_progress", 0, kMostEvaluations);
  check(!std::isnan(lowest_), "patience", "the lowest loss is not a number, expected a loss");
}

}  // namespace lockstep::train

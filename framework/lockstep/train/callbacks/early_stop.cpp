#include "lockstep/train/callbacks/early_stop.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "lockstep/core/error.h"

namespace lockstep::train {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kMostEvaluations = std::int64_t{1} << 62;

}  // namespace

void EarlyStop::after_evaluation(const EvaluationEvent& event, Orders& orders) {
  if (patience_ == 0 || !event.scheduled || !event.totals.whole) return;
  const double value = metric_ == "loss" ? event.totals.loss : event.totals.metric(metric_).value_or(kNan);
  if (higher_ ? value > best_ : value < best_) {  // false for a NaN
    best_ = value;
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
  if (metric_ == "loss") return fmt::format("{} evaluations without a loss below {:.4g}", without_progress_, best_);
  return fmt::format("{} evaluations without progress of {}, best {:.4g}", without_progress_, metric_, best_);
}

void EarlyStop::save_state(CallbackState& state) {
  state.set("metric", metric_);
  state.set("lowest", higher_ ? -best_ : best_);
  state.set("without_progress", without_progress_);
}

void EarlyStop::load_state(const CallbackState& state) {
  // Values of another metric say nothing about this one. Checkpoints of earlier versions do not name theirs.
  if (state.values().contains("metric") && state.text("metric") != metric_) return;
  best_ = higher_ ? -state.number("lowest") : state.number("lowest");
  without_progress_ = state.integer("without_progress", 0, kMostEvaluations);
  check(!std::isnan(best_), "patience", "the best {} is not a number, expected one", metric_);
}

}  // namespace lockstep::train

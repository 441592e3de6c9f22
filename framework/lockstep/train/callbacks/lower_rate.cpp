#include "lockstep/train/callbacks/lower_rate.h"

#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/core/log.h"

namespace lockstep::train {
namespace {

constexpr std::int64_t kMostCounted = std::int64_t{1} << 62;

}  // namespace

void LowerRate::after_evaluation(const EvaluationEvent& event, Orders& /*orders*/) {
  if (!event.scheduled || !event.totals.whole || !plateau_.add(event.totals.loss)) return;
  set_factor_(plateau_.factor());
  log()->info(
      "plateau: the lowest loss of evaluations stays {:.4g}; the learning rate is {:.4g} times that of the start",
      plateau_.state().lowest, plateau_.factor());
}

void LowerRate::save_state(CallbackState& state) {
  const optim::Plateau::State& now = plateau_.state();
  state.set("lowest", now.lowest);
  state.set("factor", now.factor);
  state.set("without_progress", now.without_progress);
  state.set("rest", now.rest);
}

void LowerRate::load_state(const CallbackState& state) {
  const optim::Plateau::State saved{.lowest = state.number("lowest"),
                                    .factor = state.number("factor"),
                                    .without_progress = state.integer("without_progress", 0, kMostCounted),
                                    .rest = state.integer("rest", 0, kMostCounted)};
  check(!std::isnan(saved.lowest), "plateau", "the lowest loss is not a number, expected a loss");
  check(saved.factor > 0 && saved.factor <= 1, "plateau", "the factor of the rate is {}, expected above 0, at most 1",
        saved.factor);
  plateau_.restore(saved);
  set_factor_(saved.factor);
}

}  // namespace lockstep::train

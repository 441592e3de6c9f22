#include "lockstep/train/callbacks/evaluate.h"

#include <fmt/format.h>

#include "lockstep/core/log.h"

namespace lockstep::train {

bool Evaluate::is_due(std::int64_t epoch, bool whole, bool run_ends) const {
  return every_ > 0 && ((whole && epoch % every_ == 0) || run_ends);
}

void Evaluate::make_up(const EpochEvent& /*event*/, Orders& orders) {
  if (record_.evaluation_due) orders.evaluate();
}

void Evaluate::after_step(const StepEvent& event, Orders& /*orders*/) {
  record_.evaluation_due = is_due(event.epoch, event.epoch_ends, event.run_ends);
}

void Evaluate::end_epoch(const EpochEvent& event, Orders& orders) {
  record_.evaluation_due = is_due(event.epoch, event.whole, event.run_ends);
  if (record_.evaluation_due) orders.evaluate();
}

void Evaluate::after_evaluation(const EvaluationEvent& event, Orders& /*orders*/) {
  const Totals& totals = event.totals;
  if (!event.scheduled || !totals.whole) return;
  record_.evaluation_due = false;
  record_.evaluation = {.step = event.step, .loss = totals.loss, .accuracy = totals.accuracy()};
  const std::string training = record_.epoch.epoch == event.epoch - 1 ? record_.epoch.str() : "";
  const std::string accuracy = totals.accuracy() ? fmt::format(", accuracy {:.2f}%", 100 * *totals.accuracy()) : "";
  log()->info("epoch {}: {}evaluation loss {:.4f}{} of {} samples", event.epoch, training, totals.loss, accuracy,
              totals.samples);
}

}  // namespace lockstep::train

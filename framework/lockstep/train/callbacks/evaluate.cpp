#include "lockstep/train/callbacks/evaluate.h"

#include <fmt/format.h>

#include "lockstep/core/log.h"

namespace lockstep::train {
std::string evaluation_text(const Totals& totals) {
  const std::string metrics = metrics_text(totals.metrics);
  return fmt::format("loss {}{}{} of {} samples", loss_text(totals.loss), metrics.empty() ? "" : ", ", metrics,
                     totals.samples);
}

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
  // A stream may end before the first step of an epoch: the evaluation at the end of the run is then done already.
  const bool done = record_.evaluation && record_.evaluation->step == event.step;
  record_.evaluation_due = !done && is_due(event.epoch, event.whole, event.run_ends);
  if (record_.evaluation_due) orders.evaluate();
}

void Evaluate::after_evaluation(const EvaluationEvent& event, Orders& /*orders*/) {
  const Totals& totals = event.totals;
  if (!event.scheduled || !totals.whole) return;
  record_.evaluation_due = false;
  record_.evaluation = {.step = event.step, .loss = totals.loss, .metrics = totals.metrics};
  const std::string training = record_.epoch.epoch == event.epoch - 1 ? record_.epoch.str() : "";
  log()->info("epoch {}: {}evaluation {}", event.epoch, training, evaluation_text(totals));
  for (const std::string& line : metric_lines(totals.metrics)) log()->info("epoch {}: {}", event.epoch, line);
  for (const auto& [name, more] : event.more) {
    log()->info("epoch {}: evaluation of {}: {}", event.epoch, name, evaluation_text(more));
    for (const std::string& line : metric_lines(more.metrics)) log()->info("epoch {}: {}", event.epoch, line);
  }
}

}  // namespace lockstep::train

#include "lockstep/train/callbacks/log_events.h"

#include "lockstep/core/log.h"
#include "lockstep/parallel/step/step_times.h"

namespace lockstep::train {
namespace {

double milliseconds_since(std::chrono::steady_clock::time_point then) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - then).count();
}

}  // namespace

void LogEvents::begin_run(std::int64_t step) { log()->debug("the run begins after update {}", step); }

void LogEvents::begin_epoch(const EpochEvent& event) {
  log()->debug("epoch {} begins after update {}", event.epoch, event.step);
}

// The step begins: its batch is there.
void LogEvents::vote(StepVote& /*vote*/) { batch_seconds_ = milliseconds_since(waiting_since_) / 1000; }

void LogEvents::after_step(const StepEvent& event, Orders& /*orders*/) {
  const auto logger = log();
  if (!logger->should_log(LogLevel::Trace)) return;
  const auto& times = trainer_.times();
  logger->trace(
      "update {}: {} of {} samples on this rank, batch after {:.3f} ms, computing {:.3f} ms, waiting {:.3f} ms",
      event.step, trainer_.own_totals().samples, event.totals.samples, 1000 * batch_seconds_, 1000 * times.compute,
      1000 * (times.waiting + times.earlier));
}

void LogEvents::before_evaluation(const EvaluationStart& start) {
  log()->debug("an evaluation of {} samples begins{}", start.samples,
               start.makes_up ? "; it was due when the run stopped" : "");
}

void LogEvents::after_evaluation(const EvaluationEvent& event, Orders& /*orders*/) {
  log()->debug("the evaluation after update {} took {:.3f} s{}", event.step, event.seconds,
               event.totals.whole ? "" : " and is not complete: a request ended it");
}

void LogEvents::before_checkpoint(std::int64_t step) {
  checkpoint_since_ = Clock::now();
  log()->debug("a checkpoint of update {} begins", step);
}

void LogEvents::after_checkpoint(const CheckpointEvent& event) {
  log()->debug("the state of update {} is copied after {:.1f} ms; its file is written while training goes on",
               event.step, milliseconds_since(checkpoint_since_));
}

void LogEvents::rolled_back(std::int64_t step) { log()->debug("the run continues from update {}", step); }

void LogEvents::end_run(const RunEnd& end) { log()->debug("the run ends after update {}", end.step); }

}  // namespace lockstep::train

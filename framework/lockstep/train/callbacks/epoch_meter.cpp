#include "lockstep/train/callbacks/epoch_meter.h"

namespace lockstep::train {

// A checkpoint in the middle of an epoch has the sums of that epoch. A checkpoint at the start of an epoch has the sums
// of the epoch before, and a run may roll back to it.
void EpochMeter::enter(std::int64_t epoch) {
  if (record_.epoch.epoch != epoch) record_.epoch = {.epoch = epoch};
}

void EpochMeter::begin_epoch(const EpochEvent& event) { enter(event.epoch - 1); }

void EpochMeter::after_step(const StepEvent& event, Orders& /*orders*/) {
  enter(event.epoch - 1);
  const Totals& step = event.totals;
  EpochSums& sums = record_.epoch;
  const bool applied = step.outcome == StepOutcome::Applied;  // the loss of a skipped update may be NaN
  sums.loss += applied ? step.loss * step.weight : 0;
  sums.weight += applied ? step.weight : 0;
  sums.samples += step.samples;
  sums.add_metrics(rules_, step.metrics);
}

}  // namespace lockstep::train

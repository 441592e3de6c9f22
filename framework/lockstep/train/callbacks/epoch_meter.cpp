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
  if (step.outcome != StepOutcome::Applied) return;  // the sums of a skipped update may be NaN
  EpochSums& sums = record_.epoch;
  sums.loss += step.loss * step.weight;
  sums.weight += step.weight;
  sums.samples += step.samples;
  sums.add_metrics(rules_, step.metrics);
}

}  // namespace lockstep::train

// Adds the weights to their mean after the last update of each epoch from a first one on (--swa-start;
// optim/average.h), before a checkpoint of that update: a resumed run has the mean of a run without a stop.
#pragma once

#include "lockstep/train/callbacks/callback.h"
#include "lockstep/train/step/trainer.h"

namespace lockstep::train {

class AverageWeights : public Callback {
 public:
  AverageWeights(Trainer& trainer, std::int64_t first_epoch) : trainer_(trainer), first_epoch_(first_epoch) {}
  void after_step(const StepEvent& event, Orders& /*orders*/) override {
    if (event.epoch_ends && event.epoch >= first_epoch_) trainer_.add_to_average();
  }
  // The last update of a stream does not tell that the epoch ends.
  void end_epoch(const EpochEvent& event, Orders& /*orders*/) override {
    if (event.stream_ended && event.epoch >= first_epoch_) trainer_.add_to_average();
  }

 private:
  Trainer& trainer_;
  std::int64_t first_epoch_;  // from 1
};

}  // namespace lockstep::train

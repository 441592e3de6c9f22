#include "lockstep/train/callbacks/show_progress.h"

namespace lockstep::train {

void ShowProgress::after_step(const StepEvent& event, Orders& /*orders*/) {
  state_ = {.epoch = event.epoch,
            .step_in_epoch = event.step_in_epoch,
            .step = event.step,
            .samples = event.totals.samples,
            .loss = event.totals.loss,
            .metrics = event.totals.metrics,
            .lr = event.learning_rate,
            .noise_scale = event.totals.noise_scale};
  progress_.update(state_);
}

void ShowProgress::end_epoch(const EpochEvent& /*event*/, Orders& /*orders*/) {
  progress_.finish_epoch(state_);
  progress_.pause();
}

}  // namespace lockstep::train

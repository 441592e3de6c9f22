// Writes the loss of this rank's own samples to this rank's log file, every `every` updates. Weighted by their numbers
// of samples, the losses of all ranks make the loss of the update.
#pragma once

#include <string>
#include <utility>

#include "lockstep/train/callbacks/callback.h"
#include "lockstep/train/report/log.h"
#include "lockstep/train/report/progress.h"
#include "lockstep/train/step/trainer.h"

namespace lockstep::train {

class LogRankLoss : public Callback {
 public:
  // All references must outlive this object. Of `options`, totals and log_every count.
  LogRankLoss(const Trainer& trainer, Log& log, ProgressOptions options)
      : trainer_(trainer), log_(log), options_(std::move(options)) {}
  void after_step(const StepEvent& event, Orders& orders) override;

 private:
  const Trainer& trainer_;
  Log& log_;
  ProgressOptions options_;
};

// Returns the line of one update: "epoch 1/3  step 50/282  own loss 2.3012  8 samples".
std::string rank_loss_text(std::int64_t epoch, std::int64_t step, const OwnTotals& own, const ProgressOptions& options);

}  // namespace lockstep::train

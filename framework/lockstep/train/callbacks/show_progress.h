// Shows the run's progress as a bar or as lines (train/report/progress.h).
#pragma once

#include "lockstep/train/callbacks/callback.h"
#include "lockstep/train/report/progress.h"

namespace lockstep::train {

class ShowProgress : public Callback {
 public:
  ShowProgress(Log& log, const ProgressOptions& options) : progress_(log, options) {}  // `log` must outlive this object
  void begin_run(std::int64_t step) override { state_.step = step; }
  void after_step(const StepEvent& event, Orders& orders) override;
  void before_evaluation(const EvaluationStart& start) override { progress_.begin_evaluation(start.samples); }
  void evaluated(std::int64_t samples) override { progress_.evaluated(samples); }
  void after_evaluation(const EvaluationEvent& /*event*/, Orders& /*orders*/) override { progress_.end_evaluation(); }
  void end_epoch(const EpochEvent& event, Orders& orders) override;
  void before_checkpoint(std::int64_t /*step*/) override { progress_.pause(); }
  void rolled_back(std::int64_t /*step*/) override { progress_.pause(); }

 private:
  Progress progress_;
  ProgressState state_;
};

}  // namespace lockstep::train

// Logs what a run does beside its results: with level debug, when epochs, evaluations and checkpoints begin and end;
// with level trace, also the samples and times of each update on this rank. For --log-level.
#pragma once

#include <chrono>

#include "lockstep/train/callbacks/callback.h"
#include "lockstep/train/step/trainer.h"

namespace lockstep::train {

class LogEvents : public Callback {
 public:
  explicit LogEvents(const Trainer& trainer) : trainer_(trainer) {}  // it must outlive this object
  void begin_run(std::int64_t step) override;
  void begin_epoch(const EpochEvent& event) override;
  void before_batch() override { waiting_since_ = Clock::now(); }
  void vote(StepVote& vote) override;
  void after_step(const StepEvent& event, Orders& orders) override;
  void before_evaluation(const EvaluationStart& start) override;
  void after_evaluation(const EvaluationEvent& event, Orders& orders) override;
  void before_checkpoint(std::int64_t step) override;
  void after_checkpoint(const CheckpointEvent& event) override;
  void rolled_back(std::int64_t step) override;
  void end_run(const RunEnd& end) override;

 private:
  using Clock = std::chrono::steady_clock;

  const Trainer& trainer_;
  Clock::time_point waiting_since_ = Clock::now(), checkpoint_since_ = waiting_since_;
  double batch_seconds_ = 0;  // from before_batch() to the start of the step
};

}  // namespace lockstep::train

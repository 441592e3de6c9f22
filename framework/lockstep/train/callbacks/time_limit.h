// Stops the run with a checkpoint before its time is over, by rank 0's clock.
#pragma once

#include "lockstep/train/callbacks/callback.h"
#include "lockstep/train/monitor/deadline.h"

namespace lockstep::train {

class TimeLimit : public Callback {
 public:
  TimeLimit() = default;  // of the other ranks, which hear from rank 0
  // On rank 0. Says in the log how much time there is.
  explicit TimeLimit(const DeadlineOptions& options);

  std::uint64_t requests() override;
  void after_step(const StepEvent& event, Orders& orders) override { answer(event.requests, orders); }
  // A start that the clock ends in an evaluation to be made up would never come forward, so there it does not.
  void before_evaluation(const EvaluationStart& start) override { waits_ = start.makes_up; }
  void after_evaluation(const EvaluationEvent& event, Orders& orders) override;
  void after_checkpoint(const CheckpointEvent& event) override;

 private:
  void answer(std::uint64_t asked, Orders& orders) const;
  Deadline deadline_;
  bool waits_ = false;
};

}  // namespace lockstep::train

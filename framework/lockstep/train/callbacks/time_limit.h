// Stops the run with a checkpoint before its time limit, by rank 0's clock.
#pragma once

#include "lockstep/train/callbacks/callback.h"
#include "lockstep/train/monitor/deadline.h"

namespace lockstep::train {

class TimeLimit : public Callback {
 public:
  TimeLimit() = default;  // for ranks other than 0: rank 0 decides
  // For rank 0. Logs the time that is left.
  explicit TimeLimit(const DeadlineOptions& options);

  std::uint64_t requests() override;
  void after_step(const StepEvent& event, Orders& orders) override { answer(event.requests, orders); }
  // The limit does not stop an evaluation that makes up an earlier one: otherwise every start could end in that
  // evaluation, and the run would never advance.
  void before_evaluation(const EvaluationStart& start) override { waits_ = start.makes_up; }
  void after_evaluation(const EvaluationEvent& event, Orders& orders) override;
  void after_checkpoint(const CheckpointEvent& event) override;

 private:
  void answer(std::uint64_t asked, Orders& orders) const;
  Deadline deadline_;
  bool waits_ = false;
};

}  // namespace lockstep::train

// Writes a checkpoint, or stops the run with a checkpoint, after a signal to any rank.
#pragma once

#include "lockstep/train/callbacks/callback.h"

namespace lockstep::train {

class AnswerSignals : public Callback {
 public:
  std::uint64_t requests() override;
  void after_step(const StepEvent& event, Orders& orders) override { answer(event.requests, orders); }
  void after_evaluation(const EvaluationEvent& event, Orders& orders) override;

 private:
  static void answer(std::uint64_t asked, Orders& orders);
};

}  // namespace lockstep::train

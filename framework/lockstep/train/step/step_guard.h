// The guards of a step together: asks for another attempt, or says what became of the step. Alike on all ranks.
#pragma once

#include "lockstep/train/step/gradient_policy.h"
#include "lockstep/train/step/memory_recovery.h"

namespace lockstep::train {

class StepGuard {
 public:
  // All outlive this.
  StepGuard(PreparedModel& prepared, parallel::GradientEngine& engine, StepRunner& runner, const TrainerState& state)
      : engine_(&engine),
        suspects_(prepared.comm()),
        inspection_(prepared, runner),
        memory_(prepared.comm(), prepared.options().guards.on_mismatch, engine, state, suspects_),
        gradient_(prepared.comm(), prepared.options().guards.action, engine, inspection_, suspects_) {}

  // After the engine has finished the step of update number `update`: whether it is to be run again. Collective.
  bool run_again(const LocalBatch& local, std::int64_t update, int attempts);
  StepOutcome outcome() const { return outcome_; }  // of a step that is not run again
  MemoryRecovery& memory() { return memory_; }
  const GradientPolicy& gradient() const { return gradient_; }

 private:
  const parallel::GradientEngine* engine_;
  Suspects suspects_;
  StepInspection inspection_;
  MemoryRecovery memory_;
  GradientPolicy gradient_;
  StepOutcome outcome_ = StepOutcome::Applied;
};

}  // namespace lockstep::train

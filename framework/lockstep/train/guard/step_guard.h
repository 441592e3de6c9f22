// Combines the guards of a step: requests another attempt, or reports the outcome of the step. All ranks decide the
// same.
#pragma once

#include "lockstep/train/guard/gradient_policy.h"
#include "lockstep/train/guard/memory_recovery.h"
#include "lockstep/train/runner/totals.h"

namespace lockstep::train {

class StepGuard {
 public:
  // All references must outlive this object.
  StepGuard(PreparedModel& prepared, parallel::GradientEngine& engine, StepRunner& runner, const TrainerState& state)
      : engine_(&engine),
        suspects_(prepared.comm()),
        inspection_(prepared, runner),
        memory_(prepared.comm(), prepared.options().guards.on_mismatch, engine, state, suspects_),
        gradient_(prepared.comm(), prepared.options().guards.action, engine, inspection_, suspects_) {}

  // Returns whether to run the step of update number `update` again; after the engine has finished it. Collective.
  bool run_again(const LocalBatch& local, std::int64_t update, int attempts);
  StepOutcome outcome() const { return outcome_; }  // outcome of a step that is not run again
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

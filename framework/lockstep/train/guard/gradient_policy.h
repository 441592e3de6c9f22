// Decides about a step whose loss or gradient is not finite or exceeds a limit: computes it again, skips it, stops, or
// warns. All ranks decide the same.
#pragma once

#include "lockstep/parallel/gradient_engine.h"
#include "lockstep/train/guard/step_inspection.h"
#include "lockstep/train/guard/suspects.h"
#include "lockstep/train/prepare/guards.h"

namespace lockstep::train {

class GradientPolicy {
 public:
  // All references must outlive this object.
  GradientPolicy(const comm::Communicator& comm, GuardAction action, const parallel::GradientEngine& engine,
                 StepInspection& inspection, Suspects& suspects)
      : comm_(comm), action_(action), engine_(&engine), inspection_(inspection), suspects_(suspects) {}

  // Handles update number `update`, which the engine's verdict refuses. Returns true to run the step again, false to
  // skip it; throws UntrustedError on all ranks to stop the run. Collective.
  bool refuse(const LocalBatch& local, std::int64_t update, int attempts);
  // Handles an update that was applied: logs a finding as a warning, at growing intervals.
  void accept(std::int64_t update);
  std::int64_t skipped() const { return skipped_; }  // number of skipped updates

 private:
  const comm::Communicator& comm_;
  GuardAction action_;
  const parallel::GradientEngine* engine_;
  StepInspection& inspection_;
  Suspects& suspects_;
  std::int64_t skipped_ = 0, skipped_in_a_row_ = 0, findings_ = 0;
};

}  // namespace lockstep::train

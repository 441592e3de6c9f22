// What a trainer does with a step whose loss or gradient is no good: computes it again, skips it, stops, or warns.
// Alike on all ranks.
#pragma once

#include "lockstep/parallel/gradient_engine.h"
#include "lockstep/train/step/guards.h"
#include "lockstep/train/step/step_inspection.h"
#include "lockstep/train/step/suspects.h"

namespace lockstep::train {

class GradientPolicy {
 public:
  // All outlive this.
  GradientPolicy(const comm::Communicator& comm, GuardAction action, const parallel::GradientEngine& engine,
                 StepInspection& inspection, Suspects& suspects)
      : comm_(comm), action_(action), engine_(&engine), inspection_(inspection), suspects_(suspects) {}

  // Of update number `update`, whose loss or gradient the engine's verdict refuses: true, it is to be run again; false,
  // it is skipped. Throws UntrustedError on all ranks where the run is to stop. Collective.
  bool refuse(const LocalBatch& local, std::int64_t update, int attempts);
  // Of an update that was applied: warns of what was found, ever more rarely, as it may go on for long.
  void accept(std::int64_t update);
  std::int64_t skipped() const { return skipped_; }  // updates

 private:
  const comm::Communicator& comm_;
  GuardAction action_;
  const parallel::GradientEngine* engine_;
  StepInspection& inspection_;
  Suspects& suspects_;
  std::int64_t skipped_ = 0, skipped_in_a_row_ = 0, findings_ = 0;
};

}  // namespace lockstep::train

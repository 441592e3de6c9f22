// Profiles this rank's steps; rank 0 logs a table at the end of the run.
#pragma once

#include "lockstep/train/callbacks/callback.h"
#include "lockstep/train/step/trainer.h"

namespace lockstep::train {

class ProfileSteps : public Callback {
 public:
  ProfileSteps(Trainer& trainer, bool speaks) : trainer_(trainer), speaks_(speaks) {}
  void begin_run(std::int64_t /*step*/) override { trainer_.start_profile(); }
  void end_run(const RunEnd& end) override;

 private:
  Trainer& trainer_;
  bool speaks_;  // true on rank 0, which logs
};

}  // namespace lockstep::train

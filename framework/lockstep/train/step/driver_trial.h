// Which thread drives communication: as the options say, or as the first steps show (overlap_trial.h). Alike on all
// ranks.
#pragma once

#include <memory>

#include "lockstep/parallel/gradient_engine.h"
#include "lockstep/train/step/overlap_trial.h"
#include "lockstep/train/step/prepared_model.h"

namespace lockstep::train {

class DriverTrial {
 public:
  // Throws Error where the options want a thread that MPI does not allow.
  explicit DriverTrial(PreparedModel& prepared);

  bool begins_with_thread() const { return begins_with_thread_; }
  void begin_step(parallel::GradientEngine& engine);
  std::uint64_t word() const { return trial_ ? trial_->word() : 0; }  // of the step's control block
  void end_step(parallel::GradientEngine& engine);
  std::string describe(const parallel::GradientEngine& engine) const;  // "by a thread"

 private:
  bool begins_with_thread_, speaks_;     // speaks_: on rank 0, to the log
  std::unique_ptr<OverlapTrial> trial_;  // null: decided
};

}  // namespace lockstep::train

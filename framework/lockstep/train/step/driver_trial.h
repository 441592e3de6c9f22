// Decides which thread drives communication: by the options, or by measuring the first steps (overlap_trial.h). All
// ranks decide the same.
#pragma once

#include <memory>

#include "lockstep/parallel/gradient_engine.h"
#include "lockstep/train/prepare/prepared_model.h"
#include "lockstep/train/step/overlap_trial.h"

namespace lockstep::train {

class DriverTrial {
 public:
  // Throws Error if the options request a thread and MPI's thread level does not allow it.
  explicit DriverTrial(PreparedModel& prepared);

  bool begins_with_thread() const { return begins_with_thread_; }
  void begin_step(parallel::GradientEngine& engine);
  std::uint64_t word() const { return trial_ ? trial_->word() : 0; }  // rank 0's word in the control block
  void end_step(parallel::GradientEngine& engine);
  std::string describe(const parallel::GradientEngine& engine) const;  // "by a thread"

 private:
  bool begins_with_thread_, speaks_;     // speaks_: true on rank 0, which logs
  std::unique_ptr<OverlapTrial> trial_;  // null: the decision is made
};

}  // namespace lockstep::train

// Finds out why a step's loss or gradient is no good: each rank computes its part again and looks at what it finds.
// Alike on all ranks; collective.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/train/step/prepared_model.h"
#include "lockstep/train/step/step_runner.h"

namespace lockstep::train {

inline constexpr std::string_view kDivergenceAdvice =
    "; training may have diverged: a lower learning rate (--lr) or clipping the gradient (--clip-norm) helps";

class StepInspection {
 public:
  // Both outlive this.
  StepInspection(PreparedModel& prepared, StepRunner& runner)
      : comm_(prepared.comm()), prepared_(prepared), runner_(runner) {}

  // What ranks find that is not finite, in one line; empty if all of it is finite now.
  std::string compare_findings(const LocalBatch& local, std::int64_t update);
  // The rank whose samples bring most of the gradient in the blocks of `parameter`, and in which parameter there.
  std::string find_spike(const LocalBatch& local, std::int64_t update, const std::string& parameter);

 private:
  std::string find_bad_input(plan::Plan& plan, const data::Batch& batch, Range rows) const;
  std::string find_nonfinite(const LocalBatch& local, std::int64_t update);

  const comm::Communicator& comm_;
  PreparedModel& prepared_;
  StepRunner& runner_;
};

}  // namespace lockstep::train

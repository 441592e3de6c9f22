// Finds out why a step's loss or gradient is not finite or too large: each rank computes its part again and examines
// the values. Collective; all ranks get the same text. The heartbeat beats, for a watchdog to see that ranks move.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/train/prepare/prepared_model.h"
#include "lockstep/train/runner/step_runner.h"

namespace lockstep::train {

inline constexpr std::string_view kDivergenceAdvice =
    "; training may have diverged: try a lower learning rate (--lr) or gradient clipping (--clip-norm)";

class StepInspection {
 public:
  // Both must outlive this object.
  StepInspection(PreparedModel& prepared, StepRunner& runner)
      : comm_(prepared.comm()), prepared_(prepared), runner_(runner) {}

  // Returns the values that ranks find not finite, in one line; empty: all values are finite now.
  std::string compare_findings(const LocalBatch& local, std::int64_t update);
  // Returns the rank whose samples give the largest part of the gradient in the blocks of `parameter`, and the
  // parameter in these blocks that has it.
  std::string find_spike(const LocalBatch& local, std::int64_t update, const std::string& parameter);

 private:
  std::string find_bad_input(plan::Plan& plan, const data::Batch& batch, Range rows) const;
  std::string find_nonfinite(const LocalBatch& local, std::int64_t update);

  const comm::Communicator& comm_;
  PreparedModel& prepared_;
  StepRunner& runner_;
};

}  // namespace lockstep::train

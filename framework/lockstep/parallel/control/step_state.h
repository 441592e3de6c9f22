// The state of a training step from its control block to its update: StepUpdate writes it, other parts read it.
#pragma once

#include <cstdint>

namespace lockstep::parallel {

// The values that change from step to step. `gradient_scale` is the factor from the sum in slot 0 to the gradient: 1 /
// (weight of the samples), times the factor of clipping.
struct UpdateStep {
  double learning_rate = 0, gradient_scale = 1;
  std::int64_t count = 1;  // number of this update, from 1
};

// Damaged: memory changed by itself. BadLoss and BadGradient concern the samples or the arithmetic of this step.
enum class StepVerdict : std::uint8_t { Apply, Damaged, BadLoss, BadGradient };

struct StepState {
  UpdateStep update = {};  // its gradient_scale is final once `decided`
  StepVerdict verdict = StepVerdict::Apply;
  bool posted = false;       // between the forward pass of the last shard and the end of the step
  bool sums_known = false;   // the sums of all ranks have arrived
  bool decided = false;      // buckets may be updated, by `update` and `verdict`
  bool has_samples = false;  // `update` covers at least one sample of any rank

  bool applies() const { return has_samples && verdict == StepVerdict::Apply; }
};

}  // namespace lockstep::parallel

// How far a training step is, from its control block to its update: what its parts read, and StepUpdate writes.
#pragma once

#include <cstdint>

#include "lockstep/parallel/update/updater.h"

namespace lockstep::parallel {

// Damaged: memory is not what was written. The other two are about this step's samples or arithmetic.
enum class StepVerdict : std::uint8_t { Apply, Damaged, BadLoss, BadGradient };

struct StepState {
  UpdateStep update = {};  // its gradient_scale is final once `decided`
  StepVerdict verdict = StepVerdict::Apply;
  bool posted = false;       // from the last shard's forward pass to the step's end
  bool sums_known = false;   // the sums of all ranks have come
  bool decided = false;      // buckets may be updated, by `update` and `verdict`
  bool has_samples = false;  // of any rank

  bool applies() const { return has_samples && verdict == StepVerdict::Apply; }
};

}  // namespace lockstep::parallel

// The kernel arguments of every step, resolved once, so that a run does no look-up. They are bound again after the
// arena has moved; a change of the gradient target changes only the pointers of gradients.
#pragma once

#include <vector>

#include "lockstep/plan/plan_memory.h"

namespace lockstep::plan {

class PlanPointers {
 public:
  // Call these before a run, and bind() before an input is filled.
  void bind(const Assembly& assembly, const PlanMemory& memory);  // does nothing if the arena has not moved
  void aim(GradientTarget target, const PlanMemory& memory);

  const kernels::Arguments& arguments(std::size_t step) const { return arguments_[step]; }
  GradientTarget target() const { return aimed_; }

 private:
  struct GradientPointer {
    std::size_t at;  // index into pointers_
    int buffer;
  };

  std::vector<void*> pointers_;                // inputs and outputs of every step
  std::vector<kernels::Arguments> arguments_;  // by step
  std::vector<GradientPointer> gradient_pointers_;
  GradientTarget aimed_{-1, false};
  int bound_generation_ = -1;
};

}  // namespace lockstep::plan

// The arguments of every step, resolved once: running a plan looks nothing up. Bound anew when the arena moves; a
// change of the gradients' target moves their pointers alone.
#pragma once

#include <vector>

#include "lockstep/plan/plan_memory.h"

namespace lockstep::plan {

class PlanPointers {
 public:
  // Before a run, or before an input is filled.
  void bind(const Assembly& assembly, const PlanMemory& memory);  // nothing to do while the arena stays where it is
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

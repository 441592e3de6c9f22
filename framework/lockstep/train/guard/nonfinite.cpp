#include "lockstep/train/guard/nonfinite.h"

#include <fmt/format.h>

namespace lockstep::train {

void NonFiniteFinder::poll() {
  heartbeat_.beat();
  while (plan_.steps()[at_].constant) ++at_;
  const plan::PlanStep& step = plan_.steps()[at_];
  if (where_.empty() && !plan_.is_finite(at_)) where_ = fmt::format("{} ({})", step.path, step.op->name());
  ++at_;
}

}  // namespace lockstep::train

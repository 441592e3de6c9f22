#include "lockstep/train/guard/step_guard.h"

namespace lockstep::train {

bool StepGuard::run_again(const LocalBatch& local, std::int64_t update, int attempts) {
  outcome_ = StepOutcome::Applied;
  bool again = false;
  switch (engine_->verdict()) {
    case parallel::StepVerdict::Apply:
      gradient_.accept(update);
      break;
    case parallel::StepVerdict::Damaged:
      again = memory_.recover(attempts);
      if (!again) outcome_ = StepOutcome::RolledBack;
      break;
    case parallel::StepVerdict::BadLoss:
    case parallel::StepVerdict::BadGradient:
      again = gradient_.refuse(local, update, attempts);
      if (!again) outcome_ = StepOutcome::Skipped;
      break;
  }
  return again;
}

}  // namespace lockstep::train

// Options for results that cannot be trusted: memory that changed by itself, copies that differ, losses and gradients
// that are not finite or too large, and ranks that compute wrongly. A trainer has the same defaults as the programs.
#pragma once

#include <cstdint>

#include "lockstep/parallel/guard/gradient_guard_options.h"

namespace lockstep::train {

// If an action is impossible, the next one is taken: repair, roll back, stop.
enum class OnMismatch : std::uint8_t { Stop, Repair, RollBack };
enum class GuardAction : std::uint8_t { Log, Skip, Stop };

struct GuardOptions {
  std::int64_t verify_every = 1, compare_every = 100;  // updates between checks of memory and of copies; 0: never
  OnMismatch on_mismatch = OnMismatch::Repair;
  GuardAction action = GuardAction::Stop;
  parallel::GradientGuardOptions gradient = {};

  // Returns options without any check; a loss that is not finite gives a warning in the log (core/log.h).
  static GuardOptions none() {
    GuardOptions off;
    off.verify_every = off.compare_every = 0;
    off.on_mismatch = OnMismatch::Stop;
    off.action = GuardAction::Log;
    return off;
  }
};

}  // namespace lockstep::train

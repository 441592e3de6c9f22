// Options for results that cannot be trusted: memory that changed by itself, copies that differ, losses and gradients
// that are not finite or too large, and ranks that compute wrongly. A trainer has the same defaults as the programs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lockstep/comm/agreement.h"
#include "lockstep/parallel/gradient_engine.h"
#include "lockstep/train/step/totals.h"

namespace lockstep::train {

// Thrown by all ranks together when training would continue from wrong values. Programs exit with kExitUntrusted (77).
class UntrustedError : public comm::AgreedError {
 public:
  using AgreedError::AgreedError;
};

enum class OnMismatch : std::uint8_t {
  Stop,
  Repair,
  RollBack
};  // if an action is impossible, the next one is taken: repair, roll back, stop
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
  parallel::EngineGuards engine() const;
};

}  // namespace lockstep::train

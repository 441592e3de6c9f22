// What a trainer does about results that cannot be trusted: memory that changed by itself, copies that differ, losses
// and gradients that are no good, and ranks that compute wrongly. A trainer's defaults are those of the programs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lockstep/comm/agreement.h"
#include "lockstep/parallel/gradient_engine.h"
#include "lockstep/train/step/totals.h"

namespace lockstep::train {

// Thrown by all ranks together when going on would train on something wrong. Programs exit with kExitUntrusted.
class UntrustedError : public comm::AgreedError {
 public:
  using AgreedError::AgreedError;
};

enum class OnMismatch : std::uint8_t {
  Stop,
  Repair,
  RollBack
};  // what is not possible falls to the next: roll back, stop
enum class GuardAction : std::uint8_t { Log, Skip, Stop };

struct GuardOptions {
  std::int64_t verify_every = 1, compare_every = 100;  // updates; 0: never
  OnMismatch on_mismatch = OnMismatch::Repair;
  GuardAction action = GuardAction::Stop;
  parallel::GradientGuardOptions gradient = {};

  // Nothing is looked at; a loss that is not finite is a warning in the log, if there is one (core/log.h).
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

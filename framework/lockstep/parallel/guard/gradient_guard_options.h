// The limits of a gradient guard (gradient_guard.h).
#pragma once

namespace lockstep::parallel {

struct GradientGuardOptions {
  double norm = 0;    // largest norm; 0: no limit
  double spike = 0;   // largest multiple of the running mean; 0: no limit
  double warn = 0.5;  // fraction of a limit from which the log gets a warning
};

}  // namespace lockstep::parallel

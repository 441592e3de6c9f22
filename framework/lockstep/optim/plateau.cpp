#include "lockstep/optim/plateau.h"

#include <algorithm>

#include "lockstep/core/error.h"

namespace lockstep::optim {

Plateau::Plateau(const PlateauOptions& options, double least) : options_(options), least_(std::min(least, 1.0)) {
  check(options.factor > 0 && options.factor < 1, "plateau", "the factor is {}, expected a number between 0 and 1",
        options.factor);
  check(options.patience >= 0 && options.cooldown >= 0, "plateau",
        "the patience is {} and the cooldown {}, expected 0 or more evaluations", options.patience, options.cooldown);
  check(options.threshold >= 0 && options.threshold < 1, "plateau", "the threshold is {}, expected 0 or more, below 1",
        options.threshold);
}

bool Plateau::add(double loss) {
  State& s = state_;
  const double part = s.lowest > 0 ? 1 - options_.threshold : 1 + options_.threshold;
  if (loss < part * s.lowest) {  // false for a NaN
    s.lowest = loss;
    s.without_progress = 0;
  } else {
    ++s.without_progress;
  }
  if (s.rest > 0) {
    --s.rest;
    s.without_progress = 0;
  }
  if (s.without_progress <= options_.patience) return false;
  s.without_progress = 0;
  s.rest = options_.cooldown;
  const double before = s.factor;
  s.factor = std::max(s.factor * options_.factor, least_);
  return s.factor < before;
}

}  // namespace lockstep::optim

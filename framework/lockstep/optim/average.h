// Averages of weights over training: an exponential moving average (EMA), or the mean of the weights after some epochs
// (SWA: Izmailov et al., "Averaging weights leads to wider optima and better generalization" (2018)). The average of an
// element lies beside it as one more state of the optimizer, so it is divided among ranks, saved and loaded like the
// other states.
#pragma once

#include <cstdint>
#include <memory>

#include "lockstep/optim/update_rule.h"

namespace lockstep::optim {

struct AverageOptions {
  double ema = 0;              // after each update: average += (1 - ema) * (weight - average); 0: no such average
  std::int64_t swa_start = 0;  // the first epoch, from 1, after which the weights join the mean; 0: no mean

  bool any() const { return ema > 0 || swa_start > 0; }
};

inline constexpr std::string_view kAverageState = "average";

// Returns `rule` with the average as its last state. With an EMA, each update moves it; the mean of SWA is moved by the
// caller. Throws Error for a value out of its range and for both kinds together; without options, returns `rule`.
std::shared_ptr<UpdateRule> with_average(std::shared_ptr<UpdateRule> rule, const AverageOptions& options);

}  // namespace lockstep::optim

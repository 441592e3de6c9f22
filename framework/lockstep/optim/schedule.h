// The learning rate as a function of training progress. Progress is measured in epochs, with fractions, so the rate is
// the same for every batch size and number of ranks. A Schedule is pure: any thread may call it.
#pragma once

#include <functional>
#include <vector>

namespace lockstep::optim {

using Schedule = std::function<double(double epoch)>;

// Returns the same rate always.
Schedule constant(double rate);
// Multiplies the rate by gamma at each milestone. Milestones are epochs in rising order; another order throws Error.
Schedule step_decay(double rate, std::vector<double> milestones, double gamma);
// Lowers the rate by half a cosine from `rate` to `minimum` at `epochs` (Loshchilov and Hutter, "SGDR" (2017), eq. 5).
Schedule cosine(double rate, double epochs, double minimum = 0);
// Raises the rate from rate / start_divisor to `rate` during `rising` (a fraction of `epochs`), then lowers it to
// rate / start_divisor / final_divisor, each by half a cosine (Smith and Topin, "Super-convergence" (2019); torch's
// OneCycleLR).
struct OneCycleOptions {
  double rate, epochs, rising = 0.3, start_divisor = 25, final_divisor = 1e4;
};
Schedule one_cycle(OneCycleOptions options);
// Multiplies the schedule's rate by a factor that rises linearly from `start` to 1 during the first `epochs` (Goyal et
// al., "Accurate, large minibatch SGD" (2017), section 2.2).
Schedule warm_up(Schedule schedule, double epochs, double start = 0.1);

}  // namespace lockstep::optim

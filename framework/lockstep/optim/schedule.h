// The learning rate as a function of training progress, measured in epochs (a fraction within one), so it is the same
// at every batch size and number of ranks.
#pragma once

#include <functional>
#include <vector>

namespace lockstep::optim {

using Schedule = std::function<double(double epoch)>;

Schedule constant(double rate);
// Multiplied by gamma at each of the milestones, epochs in rising order.
Schedule step_decay(double rate, std::vector<double> milestones, double gamma);
// Half a cosine from rate to `minimum` at `epochs` (Loshchilov and Hutter, "SGDR" (2017), eq. 5).
Schedule cosine(double rate, double epochs, double minimum = 0);
// Up from rate/start_divisor to rate during `rising` (a fraction of `epochs`), then down to rate/final_divisor of the
// start, both by half a cosine (Smith and Topin, "Super-convergence" (2019); as torch's OneCycleLR).
struct OneCycleOptions {
  double rate, epochs, rising = 0.3, start_divisor = 25, final_divisor = 1e4;
};
Schedule one_cycle(OneCycleOptions options);
// Linear from `start` times the schedule's own rate to the schedule itself during the first `epochs` (Goyal et al.,
// "Accurate, large minibatch SGD" (2017), section 2.2).
Schedule warm_up(Schedule schedule, double epochs, double start = 0.1);

}  // namespace lockstep::optim

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
// The same, again and again: the first cosine takes `epochs`, and each further one `growth` times as long as the one
// before it. The rate is back at `rate` where one begins (Loshchilov and Hutter, "SGDR" (2017), section 3; torch's
// CosineAnnealingWarmRestarts). A growth below 1 throws Error.
struct RestartOptions {
  double rate, epochs, growth = 1, minimum = 0;
};
Schedule cosine_restarts(RestartOptions options);
// Lowers the rate to `minimum` at `epochs` as a power of the part of the run that is left (torch's PolynomialLR, whose
// minimum is 0; its power 1 is a straight line).
struct PolynomialOptions {
  double rate, epochs, power = 1, minimum = 0;
};
Schedule polynomial(PolynomialOptions options);
// Multiplies the rate by gamma in each epoch, evenly within the epoch (torch's ExponentialLR at whole epochs).
Schedule exponential(double rate, double gamma);
// Keeps the rate for `timescale` epochs, and then lowers it as the inverse square root of the epoch: rate *
// sqrt(timescale / epoch) (Vaswani et al., "Attention is all you need" (2017), eq. 3, whose timescale is the warm-up).
Schedule inverse_square_root(double rate, double timescale);
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

#include "lockstep/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lockstep/core/error.h"
#include "lockstep/core/math.h"

namespace lockstep::optim {
namespace {

// From a to b as x goes from 0 to 1.
double half_cosine(double a, double b, double x) {
  return b + (a - b) / 2 * (1 + math::cos(std::numbers::pi * std::clamp(x, 0.0, 1.0)));
}

}  // namespace

Schedule constant(double rate) {
  return [rate](double) { return rate; };
}

Schedule step_decay(double rate, std::vector<double> milestones, double gamma) {
  check(std::ranges::is_sorted(milestones), "schedule", "milestones must be in rising order");
  return [=](double epoch) {
    const auto passed = std::ranges::upper_bound(milestones, epoch) - milestones.begin();
    return rate * math::pow(gamma, static_cast<double>(passed));
  };
}

Schedule cosine(double rate, double epochs, double minimum) {
  check(epochs > 0, "schedule", "a cosine over {} epochs, expected more than 0", epochs);
  return [=](double epoch) { return half_cosine(rate, minimum, epoch / epochs); };
}

Schedule cosine_restarts(RestartOptions o) {
  check(o.epochs > 0 && o.growth >= 1, "schedule",
        "cosines of {} epochs, each {} times as long as the one before, expected more than 0 and at least 1", o.epochs,
        o.growth);
  return [o](double epoch) {
    if (o.growth == 1) return half_cosine(o.rate, o.minimum, std::fmod(epoch, o.epochs) / o.epochs);  // exact
    double begin = 0, length = o.epochs;
    while (epoch >= begin + length) {
      begin += length;
      length *= o.growth;
    }
    return half_cosine(o.rate, o.minimum, (epoch - begin) / length);
  };
}

Schedule polynomial(PolynomialOptions o) {
  check(o.epochs > 0 && o.power > 0, "schedule", "a power of {} over {} epochs, expected both above 0", o.power,
        o.epochs);
  return [o](double epoch) {
    const double left = std::clamp(1 - epoch / o.epochs, 0.0, 1.0);
    return o.minimum + (o.rate - o.minimum) * math::pow(left, o.power);
  };
}

Schedule exponential(double rate, double gamma) {
  check(gamma > 0, "schedule", "a factor of {} per epoch, expected more than 0", gamma);
  return [=](double epoch) { return rate * math::pow(gamma, epoch); };
}

Schedule inverse_square_root(double rate, double timescale) {
  check(timescale > 0, "schedule", "a timescale of {} epochs, expected more than 0", timescale);
  return [=](double epoch) { return rate * std::sqrt(timescale / std::max(epoch, timescale)); };
}

Schedule one_cycle(OneCycleOptions o) {
  check(o.epochs > 0 && o.rising > 0 && o.rising < 1, "schedule",
        "one cycle needs epochs {} above 0 and a rising part {} in (0, 1)", o.epochs, o.rising);
  return [o](double epoch) {
    const double x = epoch / o.epochs, start = o.rate / o.start_divisor;
    return x < o.rising ? half_cosine(start, o.rate, x / o.rising)
                        : half_cosine(o.rate, start / o.final_divisor, (x - o.rising) / (1 - o.rising));
  };
}

Schedule warm_up(Schedule schedule, double epochs, double start) {
  check(epochs >= 0, "schedule", "a warm-up over {} epochs, expected 0 or more", epochs);
  if (epochs == 0) return schedule;
  return [=](double epoch) {
    const double rate = schedule(epoch);
    return epoch < epochs ? rate * (start + (1 - start) * epoch / epochs) : rate;
  };
}

}  // namespace lockstep::optim

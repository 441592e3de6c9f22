#include "lockstep/optim/schedule_options.h"

namespace lockstep::optim {
namespace {

std::vector<double> milestones_of(const ScheduleOptions& o, double epochs) {
  if (!o.milestones.empty()) return o.milestones;
  std::vector<double> all;
  for (double m = o.step_epochs; m < epochs; m += o.step_epochs) all.push_back(m);
  return all;
}

double timescale_of(const ScheduleOptions& o) {
  if (o.timescale > 0) return o.timescale;
  return o.warmup_epochs > 0 ? o.warmup_epochs : 1;
}

Schedule without_warm_up(const ScheduleOptions& o, double rate, double epochs) {
  using Kind = ScheduleOptions::Kind;
  switch (o.kind) {
    case Kind::Constant:
      return constant(rate);
    case Kind::Step:
      return step_decay(rate, milestones_of(o, epochs), o.step_gamma);
    case Kind::Cosine:
      return cosine(rate, epochs, o.minimum);
    case Kind::OneCycle:
      return one_cycle({.rate = rate,
                        .epochs = epochs,
                        .rising = o.cycle_rise,
                        .start_divisor = o.cycle_start,
                        .final_divisor = o.cycle_end});
    case Kind::CosineRestarts:
      return cosine_restarts(
          {.rate = rate, .epochs = o.restart_epochs, .growth = o.restart_growth, .minimum = o.minimum});
    case Kind::Polynomial:
      return polynomial({.rate = rate, .epochs = epochs, .power = o.power, .minimum = o.minimum});
    case Kind::Exponential:
      return exponential(rate, o.gamma);
    case Kind::InverseSqrt:
      return inverse_square_root(rate, timescale_of(o));
    case Kind::Plateau:
      return constant(rate);
  }
  return constant(rate);
}

}  // namespace

double peak_rate(const ScheduleOptions& o, std::int64_t global_batch) {
  return o.scaled ? o.peak * static_cast<double>(global_batch) / static_cast<double>(o.scale_batch) : o.peak;
}

Schedule make_schedule(const ScheduleOptions& o, double epochs, std::int64_t global_batch) {
  return warm_up(without_warm_up(o, peak_rate(o, global_batch), epochs), o.warmup_epochs, o.warmup_start);
}

}  // namespace lockstep::optim

#include "lockstep/optim/schedule_options.h"

namespace lockstep::optim {
namespace {

std::vector<double> milestones_of(const ScheduleOptions& o, double epochs) {
  if (!o.milestones.empty()) return o.milestones;
  std::vector<double> all;
  for (double m = o.step_epochs; m < epochs; m += o.step_epochs) all.push_back(m);
  return all;
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
  }
  return constant(rate);
}

}  // namespace

Schedule make_schedule(const ScheduleOptions& o, double epochs, std::int64_t global_batch) {
  const double rate =
      o.scaled ? o.peak * static_cast<double>(global_batch) / static_cast<double>(o.scale_batch) : o.peak;
  return warm_up(without_warm_up(o, rate, epochs), o.warmup_epochs, o.warmup_start);
}

}  // namespace lockstep::optim

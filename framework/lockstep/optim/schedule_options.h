// The settings of a learning-rate schedule, as command line and option files give them.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/optim/schedule.h"

namespace lockstep::optim {

struct ScheduleOptions {
  enum class Kind : std::uint8_t { Constant, Step, Cosine, OneCycle };
  Kind kind = Kind::Cosine;
  double peak = 0.1;                                           // learning rate per update, before scaling
  double warmup_epochs = 0;                                    // length of the linear rise
  double warmup_start = 0.1;                                   // fraction of the rate at which the rise begins
  double minimum = 0;                                          // cosine: the final rate
  double step_epochs = 30;                                     // step: epochs between two steps
  double step_gamma = 0.1;                                     // step: factor on the rate at each step
  std::vector<double> milestones = {};                         // step: epochs of the steps, in place of step_epochs
  double cycle_rise = 0.3, cycle_start = 25, cycle_end = 1e4;  // one-cycle: rising fraction of the run, divisors
  bool scaled = false;                                         // the rate is peak * global batch / scale_batch
  std::int64_t scale_batch = 256;                              // samples per update for which `peak` is meant

  bool has_end() const { return kind == Kind::Cosine || kind == Kind::OneCycle; }
};
// Makes the schedule of a run of `epochs` with `global_batch` samples per update. Throws Error for settings that do not
// fit.
Schedule make_schedule(const ScheduleOptions& options, double epochs, std::int64_t global_batch);

}  // namespace lockstep::optim

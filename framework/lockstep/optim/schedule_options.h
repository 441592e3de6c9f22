// A learning-rate schedule by its name and settings, as options and files say it.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/optim/schedule.h"

namespace lockstep::optim {

struct ScheduleOptions {
  enum class Kind : std::uint8_t { Constant, Step, Cosine, OneCycle };
  Kind kind = Kind::Cosine;
  double peak = 0.1;                                           // learning rate per update, before scaling
  double warmup_epochs = 0;                                    // of linear rise
  double warmup_start = 0.1;                                   // part of the rate at which the rise begins
  double minimum = 0;                                          // cosine: the rate it ends at
  double step_epochs = 30;                                     // step: epochs between two steps, ...
  double step_gamma = 0.1;                                     // ... each a multiplication by this
  std::vector<double> milestones = {};                         // step: epochs at which it steps, instead
  double cycle_rise = 0.3, cycle_start = 25, cycle_end = 1e4;  // one-cycle: rising part of the run, divisors
  bool scaled = false;                                         // the rate is peak * global batch / scale_batch
  std::int64_t scale_batch = 256;                              // samples per update that `peak` is meant for

  bool has_end() const { return kind == Kind::Cosine || kind == Kind::OneCycle; }
};
// Of a run of `epochs`, with `global_batch` samples per update.
Schedule make_schedule(const ScheduleOptions& options, double epochs, std::int64_t global_batch);

}  // namespace lockstep::optim

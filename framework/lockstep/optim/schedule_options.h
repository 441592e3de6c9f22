// The settings of a learning-rate schedule, as command line and option files give them.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/optim/plateau.h"
#include "lockstep/optim/schedule.h"

namespace lockstep::optim {

struct ScheduleOptions {
  enum class Kind : std::uint8_t {
    Constant,
    Step,
    Cosine,
    OneCycle,
    CosineRestarts,
    Polynomial,
    Exponential,
    InverseSqrt,
    Plateau
  };
  Kind kind = Kind::Cosine;
  double peak = 0.1;                                           // learning rate per update, before scaling
  double warmup_epochs = 0;                                    // length of the linear rise
  double warmup_start = 0.1;                                   // fraction of the rate at which the rise begins
  double minimum = 0;                                          // cosine, polynomial: the last rate; plateau: the least
  double step_epochs = 30;                                     // step: epochs between two steps
  double step_gamma = 0.1;                                     // step: factor on the rate at each step
  std::vector<double> milestones = {};                         // step: epochs of the steps, in place of step_epochs
  double cycle_rise = 0.3, cycle_start = 25, cycle_end = 1e4;  // one-cycle: rising fraction of the run, divisors
  double restart_epochs = 10, restart_growth = 1;              // cosine-restarts: the first cosine; factor of the next
  double power = 1;                                            // polynomial: exponent of what is left of the run
  double gamma = 0.95;                                         // exponential: factor on the rate in each epoch
  double timescale = 0;            // inverse-sqrt: epochs at the whole rate; 0: those of the warm-up, or 1
  PlateauOptions plateau = {};     // the session lowers the rate (train/callbacks/lower_rate.h)
  bool scaled = false;             // the rate is peak * global batch / scale_batch
  std::int64_t scale_batch = 256;  // samples per update for which `peak` is meant

  bool has_end() const { return kind == Kind::Cosine || kind == Kind::OneCycle || kind == Kind::Polynomial; }
  bool has_minimum() const {
    return kind == Kind::Cosine || kind == Kind::CosineRestarts || kind == Kind::Polynomial || kind == Kind::Plateau;
  }
};
// Returns the learning rate for `global_batch` samples per update, before the schedule.
double peak_rate(const ScheduleOptions& options, std::int64_t global_batch);
// Makes the schedule of a run of `epochs` with `global_batch` samples per update; that of a plateau is constant here.
// Throws Error for settings that do not fit.
Schedule make_schedule(const ScheduleOptions& options, double epochs, std::int64_t global_batch);

}  // namespace lockstep::optim

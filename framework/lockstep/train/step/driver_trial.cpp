#include "lockstep/train/step/driver_trial.h"

#include "lockstep/comm/environment.h"
#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "lockstep/parallel/exchange/path_choice.h"

namespace lockstep::train {

// Auto begins without the thread, and tries it only if there are messages between domains.
DriverTrial::DriverTrial(PreparedModel& prepared) : speaks_(prepared.comm().is_root()) {
  using Overlap = ParallelOptions::Overlap;
  const Overlap wanted = prepared.options().parallel.overlap;
  const bool able = parallel::may_drive_by_thread();
  check(wanted != Overlap::Thread || able, "overlap",
        "a communication thread (--overlap thread) needs MPI_THREAD_MULTIPLE, MPI was initialised with {}",
        comm::name_of(comm::Environment::current_thread_level()));
  if (wanted == Overlap::Auto && able && prepared.memory().domains().count() > 1)
    trial_ = std::make_unique<OverlapTrial>();
  begins_with_thread_ = wanted == Overlap::Thread && prepared.world().size > 1;
}

void DriverTrial::begin_step(parallel::GradientEngine& engine) {
  if (!trial_) return;
  engine.drive_by_thread(trial_->tries_thread());
  trial_->begin_step();
}

void DriverTrial::end_step(parallel::GradientEngine& engine) {
  if (!trial_) return;
  trial_->end_step();
  const std::uint64_t decided = engine.root_driver();
  if (decided == OverlapTrial::kUndecided) return;
  engine.drive_by_thread(decided == OverlapTrial::kThread);
  if (speaks_) {
    log()->info("communication: driven {}: a step takes {:.1f} ms with a thread for it, {:.1f} ms without",
                decided == OverlapTrial::kThread ? "by a thread" : "between the plan's steps", 1e3 * trial_->with(),
                1e3 * trial_->without());
  }
  trial_.reset();
}

std::string DriverTrial::describe(const parallel::GradientEngine& engine) const {
  if (trial_) return "as the first steps show";
  return engine.is_driven_by_thread() ? "by a thread" : "between the plan's steps";
}

}  // namespace lockstep::train

#include "lockstep/train/callbacks/trace_steps.h"

#include <algorithm>

#include "lockstep/core/log.h"
#include "lockstep/train/report/trace_file.h"

namespace lockstep::train {
namespace {

constexpr std::int64_t kColdUpdates = 3;  // not traced: memory and caches are not warm yet

}  // namespace

void TraceSteps::after_step(const StepEvent& event, Orders& /*orders*/) {
  if (written_) return;
  const std::int64_t done = event.step - began_at_;
  if (done == kColdUpdates) settings_.trainer.note_in(&trace_);
  if (done == kColdUpdates + settings_.steps) finish(settings_.steps);
}

void TraceSteps::end_run(const RunEnd& end) {
  if (!written_ && end.trained) finish(std::max<std::int64_t>(0, end.step - began_at_ - kColdUpdates));
}

void TraceSteps::finish(std::int64_t updates) {
  settings_.trainer.note_in(nullptr);
  const bool is_root = settings_.comm.is_root();
  if (!is_root) settings_.heartbeat.wait();
  const bool written = write_trace(settings_.comm, trace_, std::move(file_), settings_.path);
  settings_.heartbeat.beat();
  written_ = true;
  if (!written) return;
  if (updates > 0) {
    log()->info("trace: {} updates of {} ranks in {}", updates, settings_.comm.size(), settings_.path);
  } else if (is_root) {
    log()->warn("trace: the run ended within its first {} updates, which are not traced: {} is empty", kColdUpdates,
                settings_.path);
  }
}

}  // namespace lockstep::train

// Measures the times of a training step on this rank and notes spans of waiting in its trace. One thread.
#pragma once

#include <string>

#include "lockstep/core/trace.h"
#include "lockstep/parallel/control/step_sums.h"
#include "lockstep/parallel/step/step_times.h"

namespace lockstep::parallel {

class StepTimer {
 public:
  using Clock = Trace::Clock;

  void begin(const ReductionTraffic& traffic);
  double seconds() const { return seconds_since(begun_); }  // since begin()
  void add_wait_for_bucket(int bucket, Clock::time_point since);
  // Ends the step, which has waited for other ranks since `since`.
  void end(Clock::time_point since, const ReductionTraffic& traffic, const StepSums::Slowest& slowest);
  const StepTimes& times() const { return times_; }  // of the last step
  void note_in(Trace* trace) { trace_ = trace; }     // between steps; null: nowhere

 private:
  static double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  StepTimes times_;
  Clock::time_point begun_;
  ReductionTraffic traffic_before_;
  Trace* trace_ = nullptr;
};

}  // namespace lockstep::parallel

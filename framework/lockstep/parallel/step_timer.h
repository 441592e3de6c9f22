// Measures the times of a training step on this rank and notes spans of waiting in its trace. One thread.
#pragma once

#include <string>

#include "lockstep/core/trace.h"
#include "lockstep/parallel/control/step_sums.h"
#include "lockstep/parallel/reduce/bucket_reducer.h"

namespace lockstep::parallel {

class StepTimer {
 public:
  using Clock = Trace::Clock;
  // A rank's compute time ends when it has the sums of its last forward pass.
  struct Times {
    double compute = 0, waiting = 0;  // seconds of this rank until its last gradient, and after that
    double earlier = 0;               // seconds in this step's forward pass spent waiting for the previous step
    int slowest = 0;                  // the rank whose forward pass ended last, counted from its begin
    double slowest_lead = 0;          // seconds by which that rank was slower than the fastest
    BucketReducer::Traffic traffic;   // of the gradients
  };

  void begin(const BucketReducer::Traffic& traffic);
  double seconds() const { return seconds_since(begun_); }  // since begin()
  void add_wait_for_bucket(int bucket, Clock::time_point since);
  // Ends the step, which has waited for other ranks since `since`.
  void end(Clock::time_point since, const BucketReducer::Traffic& traffic, const StepSums::Slowest& slowest);
  const Times& times() const { return times_; }   // of the last step
  void note_in(Trace* trace) { trace_ = trace; }  // between steps; null: nowhere

 private:
  static double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  Times times_;
  Clock::time_point begun_;
  BucketReducer::Traffic traffic_before_;
  Trace* trace_ = nullptr;
};

}  // namespace lockstep::parallel

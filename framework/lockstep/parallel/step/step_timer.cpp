#include "lockstep/parallel/step/step_timer.h"

#include "lockstep/core/format.h"

namespace lockstep::parallel {

void StepTimer::begin(const ReductionTraffic& traffic) {
  begun_ = Clock::now();
  times_ = {};
  traffic_before_ = traffic;
}

void StepTimer::add_wait_for_bucket(int bucket, Clock::time_point since) {
  times_.earlier += seconds_since(since);
  if (trace_ != nullptr) trace_->add(Trace::Track::Wait, formatted("for bucket {} of the step before", bucket), since);
}

void StepTimer::end(Clock::time_point since, const ReductionTraffic& now, const StepSums::Slowest& slowest) {
  times_.compute = std::chrono::duration<double>(since - begun_).count() - times_.earlier;
  times_.waiting = seconds_since(since);
  times_.traffic = {.sent = now.sent - traffic_before_.sent,
                    .network_ns = now.network_ns - traffic_before_.network_ns,
                    .summed = now.summed - traffic_before_.summed,
                    .summing_ns = now.summing_ns - traffic_before_.summing_ns};
  times_.slowest = slowest.rank;
  times_.slowest_lead = slowest.lead;
  if (trace_ != nullptr) trace_->add(Trace::Track::Wait, "for the other ranks", since);
}

}  // namespace lockstep::parallel

// Measures the bytes that a reducer moves and the time that this takes, also as spans of a trace. The thread that
// drives writes, any thread reads.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "lockstep/core/format.h"
#include "lockstep/core/trace.h"
#include "lockstep/parallel/reduce/reduction_traffic.h"

namespace lockstep::parallel {

class TrafficMeter {
 public:
  using Time = Trace::Clock::time_point;

  void add_sent(std::int64_t bytes) { sent_ += bytes; }
  void add_summed(std::int64_t bytes, Time since) {
    summed_ += bytes;
    summing_ns_ += nanoseconds_since(since);
  }
  // Sets whether a piece is in flight between domains from now on.
  void network(bool busy) {
    const bool was_busy = network_since_ != Time{};
    if (busy == was_busy) return;
    if (was_busy) network_ns_ += nanoseconds_since(network_since_);
    network_since_ = busy ? Trace::Clock::now() : Time{};
  }
  // Totals of this rank since the reducer was made.
  ReductionTraffic traffic() const { return {sent_, network_ns_, summed_, summing_ns_}; }

  void note_in(Trace* trace) { trace_ = trace; }  // null: nowhere
  void note(Trace::Track track, std::string_view what, int bucket, int piece, Time since) {
    if (Trace* trace = trace_) trace->add(track, formatted("{} bucket {} piece {}", what, bucket, piece), since);
  }

 private:
  static std::int64_t nanoseconds_since(Time begin) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Trace::Clock::now() - begin).count();
  }
  std::atomic<std::int64_t> sent_{0}, network_ns_{0}, summed_{0}, summing_ns_{0};
  Time network_since_{};  // zero: no piece is in flight
  std::atomic<Trace*> trace_{nullptr};
};

}  // namespace lockstep::parallel

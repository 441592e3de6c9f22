#include "lockstep/parallel/update/update_scheduler.h"

#include <algorithm>

#include "lockstep/core/format.h"

namespace lockstep::parallel {

void UpdateScheduler::open() {
  std::ranges::fill(buckets_, Progress::Due);
  done_ = 0;
}

bool UpdateScheduler::advance(std::size_t started, const StepState& step) {
  bool moved = false;
  for (std::size_t b = 0; b < started; ++b) moved = advance_bucket(b, step) || moved;
  return moved;
}

bool UpdateScheduler::advance_bucket(std::size_t b, const StepState& step) {
  const int reduction = reduction_of(b);
  BucketReducer& reducer = parts_.reducer;
  const Ownership& ownership = parts_.owned.ownership();
  switch (buckets_[b]) {
    case Progress::Done:
      return false;
    case Progress::Due:
      if (!reducer.reduced(reduction)) return false;
      if (step.applies()) update(b, step);
      if (ownership.across_domains) {
        reducer.send_values(reduction);
        buckets_[b] = Progress::ValuesSent;
        return true;
      }
      if (ownership.by_owner) reducer.release(reduction);
      break;
    case Progress::ValuesSent:
      if (!reducer.values_arrived(reduction)) return false;
      take_over(b, step);
      break;
  }
  buckets_[b] = Progress::Done;
  ++done_;
  return true;
}

void UpdateScheduler::update(std::size_t b, const StepState& step) {
  const auto since = Trace::Clock::now();
  const std::span<const Range> ranges = parts_.owned.updated(b);
  parts_.guard.verify_before_update(b, ranges);
  for (Range range : ranges) parts_.updater.update(b, range, step.update);
  parts_.guard.record(b, ranges);
  if (trace_ != nullptr) trace_->add(Trace::Track::Update, formatted("update bucket {}", b), since, step.update.count);
}

// The values of owners in other domains have arrived in the parameters.
void UpdateScheduler::take_over(std::size_t b, const StepState& step) {
  const auto since = Trace::Clock::now();
  const std::span<const Range> ranges = parts_.owned.received(b);
  for (Range range : ranges) parts_.store.refresh(parts_.store.buckets()[b], range);
  if (step.applies()) parts_.guard.record(b, ranges);
  parts_.reducer.release(reduction_of(b));
  if (trace_ != nullptr)
    trace_->add(Trace::Track::Update, formatted("take over bucket {}", b), since, step.update.count);
}

}  // namespace lockstep::parallel

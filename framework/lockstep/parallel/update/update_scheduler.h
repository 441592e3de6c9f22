// Decides when this rank updates each bucket: when its sum is complete, the owned part is updated, values are exchanged
// with other domains, and then the ranks of the domain may use the bucket again. One thread, the one that computes.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/core/trace.h"
#include "lockstep/parallel/control/step_state.h"
#include "lockstep/parallel/guard/memory_guard.h"
#include "lockstep/parallel/reduce/reduction_scheduler.h"
#include "lockstep/parallel/update/owned_parts.h"
#include "lockstep/parallel/update/updater.h"

namespace lockstep::parallel {

class UpdateScheduler {
 public:
  // All references outlive the scheduler.
  struct Parts {
    plan::ParameterStore& store;
    Updater& updater;
    BucketReducer& reducer;
    const OwnedParts& owned;
    MemoryGuard& guard;
  };
  explicit UpdateScheduler(const Parts& parts) : parts_(parts), buckets_(parts.store.buckets().size(), Progress::Done) {
    done_ = buckets_.size();
  }

  void open();  // begins a step: all buckets are due
  // Updates as far as possible without waiting. The first `started` buckets have started. Returns whether anything was
  // done.
  bool advance(std::size_t started, const StepState& step);
  // Whether the values of the bucket may be read: this rank and the other ranks of the domain have updated their parts.
  bool is_done(std::size_t bucket) const {
    return buckets_[bucket] == Progress::Done && parts_.reducer.available(reduction_of(bucket));
  }
  bool late() const { return done_ < buckets_.size(); }  // whether this rank has a bucket left to update
  std::size_t buckets() const { return buckets_.size(); }
  void note_in(Trace* trace) { trace_ = trace; }  // null: nowhere

 private:
  enum class Progress : std::uint8_t { Due, ValuesSent, Done };
  bool advance_bucket(std::size_t bucket, const StepState& step);
  void update(std::size_t bucket, const StepState& step);
  void take_over(std::size_t bucket, const StepState& step);

  Parts parts_;
  std::vector<Progress> buckets_;
  std::size_t done_ = 0;  // buckets
  Trace* trace_ = nullptr;
};

}  // namespace lockstep::parallel

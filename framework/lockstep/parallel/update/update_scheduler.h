// Decides when this rank updates which bucket: once its sum is there, the owned part is updated, values go to other
// domains and come from them, and the ranks of the domain may use the bucket again. One thread, the one that computes.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/core/trace.h"
#include "lockstep/parallel/guard/memory_guard.h"
#include "lockstep/parallel/reduce/reduction_scheduler.h"
#include "lockstep/parallel/update/owned_parts.h"
#include "lockstep/parallel/update/step_state.h"

namespace lockstep::parallel {

class UpdateScheduler {
 public:
  // All outlive this.
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

  void open();  // all buckets are due
  // Does what can be done without waiting with the first `started` buckets, those that have left; returns whether that
  // was anything.
  bool advance(std::size_t started, const StepState& step);
  // This rank's part is done and, in a domain, that of the other ranks: the bucket's values may be read.
  bool is_done(std::size_t bucket) const {
    return buckets_[bucket] == Progress::Done && parts_.reducer.available(reduction_of(bucket));
  }
  bool late() const { return done_ < buckets_.size(); }  // this rank has some bucket left to update
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

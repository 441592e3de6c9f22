// The parts of every bucket that this rank updates, and those that it receives from other ranks; and the collective
// calls that make whole what owners hold in parts: gradients for callers that read them, optimizer state for
// checkpoints. One thread.
#pragma once

#include <span>
#include <vector>

#include "lockstep/parallel/reduce/bucket_reducer.h"
#include "lockstep/parallel/step_memory.h"
#include "lockstep/plan/parameter_store.h"

namespace lockstep::parallel {

// Which rank updates an element: every rank for itself, or its owner for the ranks that share memory with the owner
// (`by_owner`). With `across_domains` there is one owner in the whole job, who sends updated values to other domains.
struct Ownership {
  bool by_owner = false, across_domains = false;
};

class OwnedParts {
 public:
  // All arguments outlive this; `reducer` has all buckets of the step.
  OwnedParts(plan::ParameterStore& store, const BucketReducer& reducer, const Domains& domains,
             const Ownership& ownership);

  const Ownership& ownership() const { return ownership_; }
  // Elements of a bucket.
  std::span<const Range> updated(std::size_t bucket) const;   // by this rank: its own, or all
  std::span<const Range> received(std::size_t bucket) const;  // of other owners, with across_domains

  // Collective, after a fence: slot 0 of every bucket becomes the whole sum, on every rank. A fence follows.
  void collect_gradients(const comm::Communicator& comm, const StepMemory& memory);
  // Collective: the root's optimizer state becomes whole; or this rank drops the state that it does not own. With
  // across_domains; else each rank's state is whole.
  void collect_states(const comm::Communicator& comm);
  void drop_foreign_states();

 private:
  template <class Visit>
  void visit_states(const Visit& visit);

  plan::ParameterStore& store_;
  const BucketReducer& reducer_;
  const Domains& domains_;
  Ownership ownership_;
  std::vector<Range> whole_;  // by bucket
};

}  // namespace lockstep::parallel

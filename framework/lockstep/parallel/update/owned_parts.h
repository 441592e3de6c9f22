// The parts of every bucket that this rank updates, and the parts that it receives from other ranks. Collective calls
// gather data that owners hold in parts: gradients for callers that read them, optimizer state for checkpoints. One
// thread.
#pragma once

#include <span>
#include <vector>

#include "lockstep/parallel/reduce/bucket_reducer.h"
#include "lockstep/parallel/step/step_memory.h"
#include "lockstep/plan/parameter_store.h"

namespace lockstep::parallel {

// The rank that updates an element: every rank updates its own copy, or an owner updates the copy that its domain
// shares (`by_owner`). With `across_domains` the whole job has one owner, which sends updated values to the other
// domains.
struct Ownership {
  bool by_owner = false, across_domains = false;
};

class OwnedParts {
 public:
  // All references outlive the object; `reducer` has all buckets of the step.
  OwnedParts(plan::ParameterStore& store, const BucketReducer& reducer, const Domains& domains,
             const Ownership& ownership);

  plan::ParameterStore& store() const { return store_; }
  const Ownership& ownership() const { return ownership_; }
  // Elements of a bucket.
  std::span<const Range> updated(std::size_t bucket) const;   // by this rank: its owned elements, or all
  std::span<const Range> received(std::size_t bucket) const;  // from other owners, with across_domains

  // Makes slot 0 of every bucket the whole sum on every rank. Collective; the caller calls fence() before and after it.
  void collect_gradients(const comm::Communicator& comm, const StepMemory& memory);
  // With across_domains: makes the root's optimizer state whole (collective); drops the state that this rank does not
  // own. Otherwise the state of each rank is whole, and both do nothing.
  void collect_states(const comm::Communicator& comm);
  void drop_foreign_states();
  // With across_domains: sends the values that this rank updates to the ranks of other domains that received() them.
  // Collective.
  void spread_values(const comm::Communicator& comm) const;

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

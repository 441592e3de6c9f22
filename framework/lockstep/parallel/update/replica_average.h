// Local steps, for a hook that does not reduce: each rank updates its own weights, and every few updates all ranks
// average weights and optimizer states (Yu, Jin and Yang, "On the linear speedup analysis of communication efficient
// momentum SGD for distributed non-convex optimization" (2019), average the momentum too). One thread.
#pragma once

#include <cstdint>

#include "lockstep/comm/communicator.h"
#include "lockstep/plan/parameter_store.h"

namespace lockstep::parallel {

class ReplicaAverage {
 public:
  struct Options {
    bool active = false;  // each rank updates by its own gradient; otherwise the object does nothing
    int local_steps = 1;  // updates between two averages
  };
  ReplicaAverage(plan::ParameterStore& store, const Options& options) : store_(store), options_(options) {}

  bool is_active() const { return options_.active; }
  // Update number `count`, from 1, was applied; returns whether an average is due.
  bool after_update(std::int64_t count) {
    if (!options_.active) return false;
    differ_ = true;
    return count % options_.local_steps == 0;
  }
  bool replicas_differ() const { return differ_; }
  // Replaces values and optimizer states by their mean over all ranks. Collective.
  void run(const comm::Communicator& comm);

 private:
  plan::ParameterStore& store_;
  Options options_;
  bool differ_ = false;  // some update was applied since the last average
};

}  // namespace lockstep::parallel

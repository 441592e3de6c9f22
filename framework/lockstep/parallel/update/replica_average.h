// Local steps: ranks that each update their own weights, and average weights and optimizer states every few updates, as
// a hook asks that does not reduce (Yu, Jin and Yang, ICML 2019, average the momentum too). One thread.
#pragma once

#include <cstdint>

#include "lockstep/comm/communicator.h"
#include "lockstep/plan/parameter_store.h"

namespace lockstep::parallel {

class ReplicaAverage {
 public:
  struct Options {
    bool active = false;  // ranks update by their own gradients; else this does nothing
    int local_steps = 1;  // updates between averages
  };
  ReplicaAverage(plan::ParameterStore& store, const Options& options) : store_(store), options_(options) {}

  bool is_active() const { return options_.active; }
  // The update of that number, from 1, was applied; returns whether an average is due.
  bool after_update(std::int64_t count) {
    if (!options_.active) return false;
    differ_ = true;
    return count % options_.local_steps == 0;
  }
  bool replicas_differ() const { return differ_; }
  // Collective: values and optimizer states of all ranks become their mean.
  void run(const comm::Communicator& comm);

 private:
  plan::ParameterStore& store_;
  Options options_;
  bool differ_ = false;  // some update was applied since the last average
};

}  // namespace lockstep::parallel

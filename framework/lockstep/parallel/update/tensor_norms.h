// The norms of whole parameters that a step's update needs, while several ranks own parts of a parameter: norms of
// gradients for clipping by parameter, and of values and steps for the trust ratios of LARS and LAMB. Each rank
// measures the blocks that it owns, one more bucket of the reduction brings the blocks of all ranks together, and each
// rank adds up the blocks of a parameter in their order. A block belongs to one parameter and is summed by one rank, so
// the ratios have the same bits at any number of ranks and for any size of buckets. One thread, the one that computes.
#pragma once

#include <span>
#include <vector>

#include "lockstep/parallel/control/step_state.h"
#include "lockstep/parallel/reduce/reduction_scheduler.h"
#include "lockstep/parallel/update/updater.h"

namespace lockstep::parallel {

class TensorNorms {
 public:
  // By block of all buckets; empty where the updater needs none.
  struct Sums {
    std::span<const double> squares = {};  // of the summed gradient
    std::span<double> norms = {};          // of values, then of steps
  };
  // `reducer` has a bucket for the norms, after that of the squares. All references outlive this object.
  TensorNorms(const plan::ParameterStore& store, Updater& updater, BucketReducer& reducer, const Sums& sums);

  void open() { started_ = false; }
  // Call it when the whole gradient and its squares are complete and the step is judged, until it returns true: then
  // the updater has the factors of the step. It never waits.
  bool advance(const StepState& step);

 private:
  void start(const StepState& step);
  int reduction() const { return reduction_of(buckets_) + 1; }

  std::size_t buckets_;
  Updater& updater_;
  BucketReducer& reducer_;
  Sums sums_;
  std::vector<std::vector<Range>> measured_;  // by bucket, the ranges that this rank measures; empty without norms
  bool started_ = false;
};

}  // namespace lockstep::parallel

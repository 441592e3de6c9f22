// Applies an update rule to what the reduction left, in one pass over memory: chunk by chunk, values and states are
// updated and derived copies written from what is still in cache. Also moves running statistics. Every element depends
// on its own inputs alone, so neither threads nor where ranges are cut change a bit, and replicas stay equal without
// talking.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "lockstep/optim/groups.h"
#include "lockstep/optim/update_rule.h"
#include "lockstep/plan/parameter_store.h"

namespace lockstep::parallel {

struct UpdaterOptions {
  double weight_decay = 0;
  bool decay_biases_and_norms = true;
  std::vector<optim::ParameterGroup> groups = {};
};

// What changes from step to step. `gradient_scale` turns the sum in slot 0 into the gradient to apply: 1 / weight of
// the samples, times what clipping decides.
struct UpdateStep {
  double learning_rate = 0, gradient_scale = 1;
  std::int64_t count = 1;  // of updates, this one included
};

class Updater {
 public:
  // Reads the groups' patterns; throws Error for one that fits no parameter.
  Updater(plan::ParameterStore& store, std::shared_ptr<optim::UpdateRule> rule, const UpdaterOptions& options);

  const optim::UpdateRule& rule() const { return *rule_; }
  // Everything. Gradients in slot 0 are sums over samples of total weight `weight`; `step` counts updates from 1.
  void update(double learning_rate, double weight, std::int64_t step);
  // Elements `range` of one bucket. Fastest if it begins and ends where parameters or their layout's blocks do.
  void update(std::size_t bucket, Range range, const UpdateStep& step);

 private:
  // Neighbouring parameters, or a part of one, with the same rates; small enough for a core's cache.
  struct Chunk {
    std::size_t bucket;
    Range range;
    double rate_scale, weight_decay;
  };
  void append(const Chunk& chunk);
  void run(std::span<const Chunk> chunks, Range limits, const UpdateStep& step);
  template <class T>
  void update_chunk(const Chunk& chunk, Range range, const UpdateStep& step);

  plan::ParameterStore& store_;
  std::shared_ptr<optim::UpdateRule> rule_;
  std::vector<Chunk> chunks_;  // in the order of memory
};

// A pair of running mean and variance, to be moved by `momentum` towards the statistics of a batch: sums[c] and
// squares[c] are those of `count` values per channel. The variance becomes the unbiased one, as in PyTorch.
struct RunningUpdate {
  double momentum;
  double count;
  std::span<const double> sums, squares;
};
template <class T>
void move_running_statistics(const RunningUpdate& update, T* mean, T* variance);

}  // namespace lockstep::parallel

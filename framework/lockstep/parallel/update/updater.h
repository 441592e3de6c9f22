// Applies an update rule to the reduced gradients in one pass over memory: chunk by chunk it updates values and states
// and writes derived copies from data that is still in cache. It also moves running statistics. Every element depends
// on its own inputs alone, so neither the number of threads nor the cuts of ranges change a bit, and replicas stay
// equal without communication. One thread.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "lockstep/optim/update_rule.h"
#include "lockstep/parallel/control/step_state.h"
#include "lockstep/parallel/update/updater_options.h"
#include "lockstep/plan/parameter_store.h"

namespace lockstep::parallel {

class Updater {
 public:
  // Throws Error for a group whose pattern matches no parameter. `store` outlives the updater.
  Updater(plan::ParameterStore& store, std::shared_ptr<optim::UpdateRule> rule, const UpdaterOptions& options);

  const optim::UpdateRule& rule() const { return *rule_; }
  // Updates all parameters. Gradients in slot 0 are sums over samples of total weight `weight`; `step` counts updates
  // from 1.
  void update(double learning_rate, double weight, std::int64_t step);
  // Updates elements `range` of one bucket. It is fastest if the range begins and ends at a parameter or a layout
  // block.
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

// Moves a running mean and variance by `momentum` towards the statistics of a batch: sums[c] and squares[c] are the
// sums of x and x^2 of `count` values of channel c. The variance is the unbiased one, as in PyTorch.
struct RunningUpdate {
  double momentum;
  double count;
  std::span<const double> sums, squares;
};
template <class T>
void move_running_statistics(const RunningUpdate& update, T* mean, T* variance);

}  // namespace lockstep::parallel

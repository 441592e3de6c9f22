// Applies an update rule to what the reduction left: per parameter group in one pass over each bucket's memory, then
// refreshes derived copies; and moves running statistics. Deterministic, so replicas stay equal without talking.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "lockstep/optim/groups.h"
#include "lockstep/optim/update_rule.h"
#include "lockstep/plan/parameter_store.h"

namespace lockstep {

struct UpdaterOptions {
  double weight_decay = 0;
  bool decay_biases_and_norms = true;
  std::vector<optim::ParameterGroup> groups = {};
};

class Updater {
 public:
  // Reads the groups' patterns; throws Error for one that fits no parameter.
  Updater(ParameterStore& store, std::shared_ptr<optim::UpdateRule> rule, const UpdaterOptions& options);

  const optim::UpdateRule& rule() const { return *rule_; }
  // Gradients in slot 0 are sums over samples of total weight `weight`. `step` counts updates from 1.
  void update(double learning_rate, double weight, std::int64_t step);

 private:
  struct Stretch {  // neighbouring parameters of one group
    std::size_t bucket;
    std::int64_t begin, end;
    double rate_scale, weight_decay;
  };
  ParameterStore& store_;
  std::shared_ptr<optim::UpdateRule> rule_;
  std::vector<Stretch> stretches_;
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

}  // namespace lockstep

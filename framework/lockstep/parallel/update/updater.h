// Applies an update rule to the reduced gradients in one pass over memory: chunk by chunk it updates values and states
// and writes derived copies from data that is still in cache. It also moves running statistics. Every element depends
// on its own inputs alone, so neither the number of threads nor the cuts of ranges change a bit, and replicas stay
// equal without communication. What depends on whole parameters (clipping by parameter, the trust ratios of LARS and
// LAMB) comes from sums over blocks of memory, which the engine adds up over ranks (tensor_norms.h). One thread.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "lockstep/optim/update_rule.h"
#include "lockstep/parallel/control/step_state.h"
#include "lockstep/parallel/reduce/bucket_blocks.h"
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

  // Whether updates need the norms of whole parameters: of gradients alone, or also of values and steps.
  bool clips_parameters() const { return options_.clip_layer_norm > 0; }
  bool uses_norms() const { return rule_->uses_norms(); }
  // Both take sums by block of all buckets (bucket_blocks.h); in the store, parameters begin at blocks. Sets the
  // factors of clipping by parameter from the squares of the summed gradient.
  void clip_parameters(std::span<const double> squares, double gradient_scale);
  // Sets the trust ratios from the squares of values and of steps.
  void set_trust(std::span<const double> values, std::span<const double> steps, const UpdateStep& step);
  // Writes these squares for the whole blocks `range` of a bucket, before its update.
  void measure(std::size_t bucket, Range range, const UpdateStep& step, std::span<double> values,
               std::span<double> steps);

 private:
  // One parameter in a bucket.
  struct Whole {
    Range blocks;
    double rate_scale, weight_decay;
    bool adapts;                 // its rate has a trust ratio: it is a weight, no bias and no parameter of a norm
    double clip = 1, trust = 1;  // factors of the step
  };
  // Neighbouring parameters, or a part of one, with the same rates; small enough for a core's cache.
  struct Chunk {
    std::size_t bucket;
    Range range;
    std::size_t whole;  // the parameter, or the first one
  };
  bool by_parameter() const { return clips_parameters() || uses_norms(); }
  void append(const Chunk& chunk);
  void add_parameter(std::size_t bucket, const plan::BucketEntry& entry);
  optim::Rates rates_of(const Whole& whole, const UpdateStep& step) const;
  std::span<const Chunk> chunks_of(std::size_t bucket, Range range) const;
  template <class Work>
  void for_chunks(std::span<const Chunk> chunks, const Work& work) const;
  void run(std::span<const Chunk> chunks, Range limits, const UpdateStep& step);
  template <class T>
  void update_chunk(const Chunk& chunk, Range range, const UpdateStep& step);
  template <class T>
  void measure_chunk(const Chunk& chunk, Range range, const UpdateStep& step, std::span<double> values,
                     std::span<double> steps) const;

  plan::ParameterStore& store_;
  std::shared_ptr<optim::UpdateRule> rule_;
  UpdaterOptions options_;
  BucketBlocks blocks_;
  std::vector<Whole> wholes_;  // in the order of memory, as all below
  std::vector<Chunk> chunks_;
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

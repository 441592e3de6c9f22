// Decides when the reduction of a bucket starts. As the gradients of a bucket become final, the sums of this rank's
// shards are joined in its slots; after the last shard the bucket is started, in the same order on all ranks. Batch
// statistics come before all buckets, sums of squares after them. On request it also measures the gradient of each
// shard, for the noise scale. One thread, the one that computes.
#pragma once

#include <span>
#include <vector>

#include "lockstep/parallel/reduce/bucket_blocks.h"
#include "lockstep/parallel/reduce/bucket_reducer.h"
#include "lockstep/parallel/tree/world_layout.h"
#include "lockstep/plan/parameter_store.h"

namespace lockstep::parallel {

// Numbers of a step's buckets in the BucketReducer: the statistics first, the store's buckets, the squares if any, the
// norms of parameters if any (update/tensor_norms.h).
constexpr int kStatisticsReduction = 0;
constexpr int reduction_of(std::size_t bucket) { return static_cast<int>(bucket) + 1; }

class ReductionScheduler {
 public:
  struct Options {
    std::vector<std::span<double>> statistics = {};  // of this rank, by slot
    bool squares = false;                            // the reducer has a bucket of sums of squares
    // By slot, kNoiseSums doubles at the end of the bucket of squares (gradient_noise.h); empty: none are wanted.
    std::vector<std::span<double>> noise = {};
    Wire wire = Wire::Exact;
  };
  // `reducer` has the buckets of the step (with_buckets() in engine_setup.h). `store` and `reducer` outlive the
  // scheduler.
  ReductionScheduler(const plan::ParameterStore& store, BucketReducer& reducer, const WorldLayout& world,
                     Options options);

  void begin_step();
  // The current shard: the slot of its gradients, and its statistics, which begin at zero.
  int slot() const { return walk_.slot(); }
  bool is_last_shard() const { return walk_.last(); }
  std::span<double> statistics() { return options_.statistics[static_cast<std::size_t>(slot())]; }
  // The statistics of the shard are complete: joins them, and after the last shard starts their reduction. The shard
  // has `samples` samples, whose weights add up to `weight`.
  void end_statistics(double samples = 0, double weight = 0);
  int retire(const Parameter* parameter);  // the gradient is final; returns the bucket
  void zero(std::size_t bucket);  // for a shard without samples: sets the bucket's gradients to zero; they are final
  void end_shard();

  // Call it before the first gradient of the last shard; no bucket of this step has started.
  void open();
  std::size_t started() const { return next_; }  // number of buckets of this step that have started
  // Whether the whole gradient of the step is summed, and its squares too if there are any. Starts the reduction of the
  // squares when the gradient is complete.
  bool is_gradient_reduced();
  std::span<const double> sums_of_statistics() const { return options_.statistics[0]; }  // over all ranks, once reduced

 private:
  void begin_shard();
  void complete(std::size_t bucket);
  void join(const plan::Bucket& bucket) const;
  void measure(std::size_t bucket);
  void end_measuring();

  const plan::ParameterStore& store_;
  BucketReducer& reducer_;
  ShardWalk walk_;
  Options options_;
  BucketBlocks blocks_;
  std::vector<int> awaited_;    // by bucket: gradients of this shard that are not final
  std::vector<bool> complete_;  // by bucket: joined for the last shard
  std::size_t next_ = 0;        // the bucket that starts next
  bool squares_started_ = false;
  // Of the present shard's gradient, with Options::noise.
  struct Measure {
    double samples = 0, weight = 0;
    std::size_t left = 0;              // buckets
    std::vector<double> squares = {};  // by block of all buckets
  } measure_;
};

}  // namespace lockstep::parallel

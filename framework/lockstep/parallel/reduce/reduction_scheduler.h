// Decides when a bucket leaves for the other ranks: the sums of this rank's shards are joined in the slots of a bucket
// as its gradients become final, and after the last shard the bucket is started, in the order that all ranks share.
// Batch statistics go before all buckets, sums of squares after them. One thread, the one that computes.
#pragma once

#include <span>
#include <vector>

#include "lockstep/parallel/reduce/bucket_reducer.h"
#include "lockstep/parallel/tree/world_layout.h"
#include "lockstep/plan/parameter_store.h"

namespace lockstep::parallel {

// Numbers of a step's buckets in the BucketReducer: the statistics first, the store's buckets, the squares if any.
constexpr int kStatisticsReduction = 0;
constexpr int reduction_of(std::size_t bucket) { return static_cast<int>(bucket) + 1; }

class ReductionScheduler {
 public:
  struct Options {
    std::vector<std::span<double>> statistics = {};  // of this rank, by slot
    bool squares = false;                            // the reducer has a bucket of sums of squares, the last one
    Wire wire = Wire::Exact;
  };
  // `store` and `reducer`, to which all buckets of the step are added, outlive this.
  ReductionScheduler(const plan::ParameterStore& store, BucketReducer& reducer, const WorldLayout& world,
                     Options options);

  void begin_step();
  // The current shard: the slot of its gradients, and its statistics, zero at first.
  int slot() const { return walk_.slot(); }
  bool is_last_shard() const { return walk_.last(); }
  std::span<double> statistics() { return options_.statistics[static_cast<std::size_t>(slot())]; }
  // The statistics are complete: they are joined, and those of the last shard leave.
  void end_statistics();
  int retire(const Parameter* parameter);  // its gradient is final; returns its bucket
  void zero(std::size_t bucket);           // all of the bucket's gradients are zero and final: no sample
  void end_shard();

  // Before the last shard's first gradient: no bucket of this step has left.
  void open();
  std::size_t started() const { return next_; }  // buckets of this step that have left, in order
  // Whether the whole gradient of the step is summed, and its squares if there are any, whose bucket this starts.
  bool is_gradient_reduced();
  std::span<const double> sums_of_statistics() const { return options_.statistics[0]; }  // of all ranks, once reduced

 private:
  void begin_shard();
  void complete(std::size_t bucket);
  void join(const plan::Bucket& bucket) const;

  const plan::ParameterStore& store_;
  BucketReducer& reducer_;
  ShardWalk walk_;
  Options options_;
  std::vector<int> awaited_;    // by bucket: gradients of this shard that are not final
  std::vector<bool> complete_;  // by bucket: joined for the last shard
  std::size_t next_ = 0;        // the bucket that leaves next
  bool squares_started_ = false;
};

}  // namespace lockstep::parallel

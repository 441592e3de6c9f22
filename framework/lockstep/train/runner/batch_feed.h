// Copies samples of a batch into the inputs of a model's plans, and finds the plan for a number of samples. One thread.
#pragma once

#include <map>
#include <utility>

#include "lockstep/core/partition.h"
#include "lockstep/data/batch.h"
#include "lockstep/train/prepare/prepared_model.h"

namespace lockstep::train {

// This rank's samples of a step. `first` is the position of its first sample in the global batch; `global_size` is -1
// for a streamed batch, which each rank has for itself.
struct LocalBatch {
  const data::Batch* batch;
  std::int64_t first, global_size;

  // Returns the samples of a shard, by their numbers in the step; a streamed batch is one shard.
  Range shard(std::int64_t shards, std::int64_t number) const {
    return global_size < 0 ? Range{0, batch->samples()} : part_of(global_size, shards, number);
  }
  // Returns the rows of this batch that are micro-batch number `micro` of a shard of this rank.
  Range rows(Range shard, std::int64_t micro_batches, std::int64_t micro) const {
    const Range part = part_of(shard.size(), micro_batches, micro);
    return {shard.begin + part.begin - first, shard.begin + part.end - first};
  }
};

class BatchFeed {
 public:
  explicit BatchFeed(PreparedModel& prepared) : prepared_(prepared) {}  // it must outlive this object

  plan::Plan& plan(Mode mode, std::int64_t samples);
  // Copies `rows` of the batch; their number must be the plan's. The model's random numbers depend on `step`. Throws
  // Error if a field differs in type or shape from the traced one.
  void fill(plan::Plan& plan, const data::Batch& batch, Range rows, std::uint64_t step) const;
  // Throws Error unless each field of the batch has a name, and one row per sample.
  static void check_batch(const data::Batch& batch);

 private:
  PreparedModel& prepared_;
  std::map<std::pair<Mode, std::int64_t>, plan::Plan*> plans_;  // by mode and samples: faster than a search by types
};

}  // namespace lockstep::train

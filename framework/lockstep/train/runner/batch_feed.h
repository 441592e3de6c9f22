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

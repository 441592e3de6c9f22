// Brings samples of a batch into the inputs of a model's plans, and finds the plan for a number of samples. One thread.
#pragma once

#include <map>
#include <utility>

#include "lockstep/core/partition.h"
#include "lockstep/data/batch.h"
#include "lockstep/train/step/prepared_model.h"

namespace lockstep::train {

class BatchFeed {
 public:
  explicit BatchFeed(PreparedModel& prepared) : prepared_(prepared) {}  // which outlives this

  plan::Plan& plan(Mode mode, std::int64_t samples);
  // `rows` of the batch, as many as the plan was made for. `step` is what random numbers of the model depend on. Throws
  // Error where a field is not what the model was traced with.
  void fill(plan::Plan& plan, const data::Batch& batch, Range rows, std::uint64_t step) const;
  // Throws Error unless the batch is whole: a name for each field, and a row for each sample.
  static void check_batch(const data::Batch& batch);

 private:
  PreparedModel& prepared_;
  std::map<std::pair<Mode, std::int64_t>, plan::Plan*> plans_;  // by samples, to find one without asking for types
};

}  // namespace lockstep::train

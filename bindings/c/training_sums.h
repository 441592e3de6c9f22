// The sums of an evaluation of this rank's own samples, of any number, and the totals over all ranks. The library's
// train::Evaluator reads a data set that all ranks share by a loader; here each rank has arrays of its own.
#pragma once

#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/data/batch.h"
#include "lockstep/plan/compiled_model.h"
#include "lockstep/train/runner/totals.h"

namespace lockstep::bindings {

struct EvaluationSums {
  std::vector<double> sums{};               // as train::add_sums() lays them out
  std::vector<plan::PlanMetric> metrics{};  // of the model
};

// Runs the model in evaluation mode over the samples, at most `most` at a time. No communication; throws Error.
EvaluationSums evaluation_sums(plan::CompiledModel& model, const data::Batch& batch, std::int64_t most);
// Adds the sums of all ranks in the order of ranks, so the result is the same on all of them. Collective.
train::Totals add_up(const comm::Communicator& comm, const EvaluationSums& mine);

}  // namespace lockstep::bindings

// Predicts the samples of a run's data set and writes the predictions to the file of --predict. Collective; all ranks
// throw the same AgreedError if one fails, and then no file is left.
//
// Samples are computed in groups of --batch-size (of 64 at most where that is 0), in their order; a group is computed
// by one rank, so the file has the same bytes at any number of ranks. Rank 0 writes the groups in their order. A rank
// needs memory for two groups.
#pragma once

#include "lockstep/data/batch.h"
#include "lockstep/plan/trace.h"
#include "lockstep/train/run/run_parts.h"

namespace lockstep::train {

// Returns the model function whose evaluation computes the prediction alone: it reads no targets.
plan::ModelFunction prediction_alone(plan::ModelFunction model);

void write_predictions(const RunParts& run);

// Returns the first group of samples that would be predicted. Not collective.
data::Batch first_group(const RunParts& run);

}  // namespace lockstep::train

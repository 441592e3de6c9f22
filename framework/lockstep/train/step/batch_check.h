// What is wrong with a batch, in the words of a caller: batches whose parts a model cannot be trained on, which all
// ranks know before anything is computed, and the sample that a plan's row is.
#pragma once

#include <span>
#include <string>

#include "lockstep/core/partition.h"
#include "lockstep/data/batch.h"
#include "lockstep/graph/graph.h"

namespace lockstep::train {

// How a global batch is cut: into shards, and each shard into micro-batches.
struct BatchParts {
  std::int64_t shards = 1, accumulate = 1;
};

// A batch norm that sees one value per channel makes the same of every input, so that a step trains on nothing. Why a
// batch of so many samples, all ranks together, leaves one of the norms so; empty if it does not. Parts without samples
// are fine.
std::string single_value_norm(std::span<const RunningStatistics> norms, const BatchParts& parts, std::int64_t samples);

// "sample 4711 (row 2 of this rank's 16)"; a batch whose samples have no ids has rows alone.
std::string sample_name(const data::Batch& batch, std::int64_t row);

// Runs a plan on rows of a batch, by `run()`. A SampleError says then which sample it is.
template <class Run>
void run_on_rows(const data::Batch& batch, Range rows, const Run& run) {
  try {
    run();
  } catch (const SampleError& error) {
    throw error.of(sample_name(batch, rows.begin + error.row()));
  }
}

}  // namespace lockstep::train

// Explains errors of a batch: finds batch sizes on which a model cannot be trained, before anything is computed, and
// names the sample of a plan's row, and finds samples with values that are not finite.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lockstep/core/partition.h"
#include "lockstep/core/tensor.h"
#include "lockstep/data/batch.h"
#include "lockstep/graph/graph.h"

namespace lockstep::train {

// The parts of a global batch: shards, each divided into micro-batches.
struct BatchParts {
  std::int64_t shards = 1, accumulate = 1;
};

// Returns the reason why a batch of `samples` samples over all ranks gives one of the batch norms a single value per
// channel; empty: it does not. Such a norm gives the same output for every input, so a step learns nothing. Parts
// without samples are allowed.
std::string single_value_norm(std::span<const RunningStatistics> norms, const BatchParts& parts, std::int64_t samples);

// Returns "sample 4711 (row 2 of this rank's 16)", or only the row if the batch has no sample ids.
std::string sample_name(const data::Batch& batch, std::int64_t row);

// Returns the first of `rows` of a batch's field, (samples, ...), with a value that is not finite; -1: there is none.
std::int64_t first_bad_row(const Tensor& field, Range rows);

// Calls `run()`, which runs a plan on `rows` of a batch; adds the name of the sample to a SampleError.
template <class Run>
void run_on_rows(const data::Batch& batch, Range rows, const Run& run) {
  try {
    run();
  } catch (const SampleError& error) {
    throw error.of(sample_name(batch, rows.begin + error.row()));
  }
}

}  // namespace lockstep::train

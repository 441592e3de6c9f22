// The options of a Trainer: how it divides, reduces, guards and applies a step.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "lockstep/core/dtype.h"
#include "lockstep/core/heartbeat.h"
#include "lockstep/data/sampler.h"
#include "lockstep/optim/average.h"
#include "lockstep/optim/update_rule.h"
#include "lockstep/parallel/tables/table_options.h"
#include "lockstep/parallel/update/updater_options.h"
#include "lockstep/plan/compile_options.h"
#include "lockstep/train/prepare/guards.h"
#include "lockstep/train/prepare/parallel_options.h"

namespace lockstep::train {

struct TrainerOptions {
  // Nominal number of samples per step over all ranks, for which plans and layouts are made first.
  std::int64_t global_batch = 0;
  std::int64_t shards = 0;      // number of shards per step; 0: one per rank
  std::int64_t accumulate = 1;  // micro-batches per shard
  DType precision = DType::F32;
  std::uint64_t seed = 0;                        // of weights, samples and dropout; rank 0's is everybody's
  std::shared_ptr<optim::UpdateRule> rule = {};  // empty: plain SGD
  parallel::UpdaterOptions update = {};
  parallel::TableOptions tables = {};  // of sparse tables: their rules, and where rows lie
  std::int64_t bucket_bytes = 0;  // bytes of gradients that are reduced together; 0: chosen from the network's speed
  double clip_norm = 0;           // largest norm of the gradient over all parameters; 0: no clipping
  // Of the weights: evaluations, and weights loaded from a checkpoint, are those of the average.
  optim::AverageOptions average = {};
  bool noise_scale = false;  // estimate Totals::noise_scale; needs at least two shards or ranks
  ParallelOptions parallel = {};
  std::size_t sums = 0;      // number of the caller's f64 values that each step sums over ranks, see vote()
  GuardOptions guards = {};  // on by default; without on_roll_back(), damage that cannot be repaired stops training
  plan::CompileOptions compile = {};
  bool autotune = false;                      // measure the fastest kernels, see train/prepare/autotune.h
  std::filesystem::path autotune_cache = {};  // file of the measured choices; empty: not saved

  bool is_portable() const { return compile.kernels.bits == kernels::KernelOptions::Bits::Portable; }
  Heartbeat* heartbeat = nullptr;  // for a watchdog (train/monitor/watchdog.h); must outlive the trainer
};

// The order in which all ranks together read a data set.
struct SamplingOptions {
  bool shuffle = true;                                // false: the order of the data set, for evaluation
  data::Remainder remainder = data::Remainder::Keep;  // for an epoch's last samples, if they fill no global batch
  std::int64_t global_batch = 0;                      // samples per step over all ranks; 0: the trainer's
  std::shared_ptr<const data::SampleOrder> order{};   // the samples of an epoch; null: each once
  std::int64_t shuffle_block = 1;                     // neighbours that stay together (data::SamplerOptions)
};

}  // namespace lockstep::train

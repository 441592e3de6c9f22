// What a Trainer is told: how a step is cut, reduced, guarded and applied.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "lockstep/core/dtype.h"
#include "lockstep/core/heartbeat.h"
#include "lockstep/data/sampler.h"
#include "lockstep/optim/update_rule.h"
#include "lockstep/parallel/update/updater.h"
#include "lockstep/plan/compiled_model.h"
#include "lockstep/train/step/guards.h"
#include "lockstep/train/step/parallel_options.h"

namespace lockstep::train {

struct TrainerOptions {
  // Samples per step over all ranks: the nominal number, for which plans and layouts are made first.
  std::int64_t global_batch = 0;
  std::int64_t shards = 0;      // of the reduction tree; 0: one per rank
  std::int64_t accumulate = 1;  // micro-batches per shard
  DType precision = DType::F32;
  std::uint64_t seed = 0;
  std::shared_ptr<optim::UpdateRule> rule = {};  // empty: plain SGD
  parallel::UpdaterOptions update = {};
  std::int64_t bucket_bytes = 0;  // of gradients that are reduced together; 0: chosen from the network's speed
  double clip_norm = 0;           // largest norm of the gradient, all parameters together; 0: any
  ParallelOptions parallel = {};
  std::size_t sums = 0;      // f64 numbers of the caller's that are added up over ranks with each step, see vote()
  GuardOptions guards = {};  // on, as in the programs; without on_roll_back() what cannot be repaired stops
  plan::CompileOptions compile = {};
  bool autotune = false;                      // measure which kernels are fastest, see train/step/autotune.h
  std::filesystem::path autotune_cache = {};  // where choices are kept; empty: nowhere
  Heartbeat* heartbeat = nullptr;             // a watchdog reads it (train/monitor/watchdog.h); outlives the trainer
};

// How a data set is walked by all ranks together.
struct SamplingOptions {
  bool shuffle = true;                                // false: in order, for evaluation
  data::Remainder remainder = data::Remainder::Keep;  // of an epoch's samples that fill no global batch
  std::int64_t global_batch = 0;                      // samples per step over all ranks; 0: the trainer's
};

}  // namespace lockstep::train

// This rank's part of a training step: each of its shards forward and backward, in micro-batches, with what the
// reduction is told meanwhile. One thread.
#pragma once

#include <functional>
#include <memory>

#include "lockstep/parallel/gradient_engine.h"
#include "lockstep/train/report/step_profile.h"
#include "lockstep/train/step/batch_feed.h"
#include "lockstep/train/step/prepared_model.h"

namespace lockstep::train {

// This rank's samples of a step. `first` is the position of its first sample among the global ones; `global_size` is -1
// for a streamed batch, of which each rank has its own.
struct LocalBatch {
  const data::Batch* batch;
  std::int64_t first, global_size;
};

class StepRunner {
 public:
  // All outlive this.
  StepRunner(PreparedModel& prepared, parallel::GradientEngine& engine, BatchFeed& feed)
      : prepared_(prepared), engine_(&engine), feed_(feed) {}

  // All shards of this rank, after `update` updates; between the engine's begin_step() and finish_step().
  void run(const LocalBatch& local, std::int64_t update);
  // Runs the step's plans once more, the gradient in slot 0, outside of a step: visit(plan, rows, first) runs the plan.
  void repeat(const LocalBatch& local, std::int64_t update,
              const std::function<void(plan::Plan& plan, Range rows, bool first)>& visit);

  // What the model function observed in the last run; throws Error if there is none whose values are in memory.
  Tensor observed(const std::string& name) const;
  void forget() { last_plan_ = nullptr; }  // the memory of plans is another run's now

  void start_profile() { profile_ = std::make_unique<StepProfile>(kernels::measure_peaks()); }
  StepProfile* profile() const { return profile_.get(); }  // null without one
  void note_in(Trace* trace) { trace_ = trace; }           // null: nowhere
  Trace* trace() const { return trace_; }

 private:
  class ShardHooks;
  plan::Plan& fill(const data::Batch& batch, Range rows, std::int64_t update);
  void damage_input(plan::Plan& plan, std::int64_t update) const;
  void run_shard(const LocalBatch& local, Range shard, std::int64_t update);
  void add_forward(const plan::Plan& plan, std::int64_t samples);
  Range rows_of(const LocalBatch& local, std::int64_t shard) const;
  std::int64_t accumulate() const { return prepared_.options().accumulate; }
  bool is_run(Range shard, std::int64_t micro) const {
    return prepared_.nominal().is_collective || part_of(shard.size(), accumulate(), micro).size() > 0;
  }

  PreparedModel& prepared_;
  parallel::GradientEngine* engine_;
  BatchFeed& feed_;
  std::unique_ptr<StepProfile> profile_;
  Trace* trace_ = nullptr;
  plan::Plan* last_plan_ = nullptr;  // whose values are in memory: of training, null without
};

}  // namespace lockstep::train

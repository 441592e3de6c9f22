// Runs this rank's part of a training step: forward and backward for each of its shards, in micro-batches, and reports
// progress to the reduction. One thread.
#pragma once

#include <functional>
#include <memory>

#include "lockstep/parallel/gradient_engine.h"
#include "lockstep/train/prepare/prepared_model.h"
#include "lockstep/train/report/step_profile.h"
#include "lockstep/train/runner/batch_feed.h"
#include "lockstep/train/runner/table_lookahead.h"
#include "lockstep/train/runner/totals.h"

namespace lockstep::train {

class StepRunner {
 public:
  // All references must outlive this object.
  StepRunner(PreparedModel& prepared, parallel::GradientEngine& engine, BatchFeed& feed)
      : prepared_(prepared), engine_(&engine), feed_(feed), lookahead_(prepared, feed) {}

  // Runs all shards of this rank, after `update` updates; between the engine's begin_step() and finish_step().
  void run(const LocalBatch& local, std::int64_t update);
  // Runs the step's plans once more outside of a step, with the gradient in slot 0: calls visit(plan, rows, first),
  // which runs the plan. Beats before each micro-batch.
  void repeat(const LocalBatch& local, std::int64_t update,
              const std::function<void(plan::Plan& plan, Range rows, bool first)>& visit);

  // Returns a value that the model function observed in the last run; throws Error if its memory was reused or there
  // was no run.
  Tensor observed(const std::string& name) const;
  TableLookahead& lookahead() { return lookahead_; }
  void forget() { last_plan_ = nullptr; }  // another run uses the memory of plans now

  const OwnTotals& own_totals() const { return own_; }  // of the last run

  void start_profile() { profile_ = std::make_unique<StepProfile>(kernels::measure_peaks()); }
  StepProfile* profile() const { return profile_.get(); }  // null: no profile
  void note_in(Trace* trace) { trace_ = trace; }           // null: no trace
  Trace* trace() const { return trace_; }

 private:
  class ShardHooks;
  plan::Plan& fill(const data::Batch& batch, Range rows, std::int64_t update);
  void damage_input(plan::Plan& plan, std::int64_t update) const;
  void run_shard(const LocalBatch& local, Range shard, std::int64_t update);
  void add_forward(const plan::Plan& plan, std::int64_t samples);
  std::int64_t accumulate() const { return prepared_.options().accumulate; }
  bool is_run(Range shard, std::int64_t micro) const {
    return prepared_.nominal().is_collective || part_of(shard.size(), accumulate(), micro).size() > 0;
  }

  PreparedModel& prepared_;
  parallel::GradientEngine* engine_;
  BatchFeed& feed_;
  TableLookahead lookahead_;
  std::unique_ptr<StepProfile> profile_;
  Trace* trace_ = nullptr;
  OwnTotals own_;
  plan::Plan* last_plan_ = nullptr;  // the training plan whose values are in memory; null: none
};

}  // namespace lockstep::train

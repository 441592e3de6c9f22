#include "lockstep/train/runner/step_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "lockstep/core/error.h"
#include "lockstep/core/fault_point.h"
#include "lockstep/train/prepare/batch_check.h"
#include "lockstep/train/runner/step_sums.h"

namespace lockstep::train {
namespace {

using Part = StepProfile::Part;

// The number of nodes that hand gradients to sparse tables.
int table_gradients(const plan::Plan& plan) {
  return static_cast<int>(std::ranges::count_if(
      plan.steps(), [](const plan::PlanStep& step) { return step.op->name() == "table_gradient"; }));
}

}  // namespace

// Reports the progress of a shard's last plan to the engine; adds the sums of the forward pass before the first
// gradient.
class StepRunner::ShardHooks : public plan::PlanHooks {
 public:
  ShardHooks(StepRunner& runner, const plan::Plan& plan, std::int64_t samples, bool last)
      : runner_(runner), plan_(plan), samples_(samples), last_(last) {}

  void needs(int bucket) override {
    const StepProfile::Timer timer(runner_.profile_.get(), Part::Wait);
    runner_.engine_->needs(bucket);
  }
  void retired(const Parameter* parameter) override {
    if (!last_) return;
    const StepProfile::Timer timer(runner_.profile_.get(), Part::Communication);
    forward_done();
    runner_.engine_->retired(parameter);
  }
  void poll() override {
    runner_.prepared_.heartbeat().beat();
    if (runner_.trace_ != nullptr) note_step();
    if (!forward_known_ && !runner_.engine_->late()) return;
    const StepProfile::Timer timer(runner_.profile_.get(), Part::Communication);
    runner_.engine_->poll();
    since_ = runner_.trace_ != nullptr ? Trace::Clock::now() : since_;
  }
  void forward_done() {
    if (std::exchange(forward_known_, true)) return;
    runner_.add_forward(plan_, samples_);
    if (last_) runner_.engine_->sums_ready();
  }

 private:
  void note_step() {
    while (plan_.steps()[at_].constant) ++at_;
    const plan::PlanStep& step = plan_.steps()[at_++];
    runner_.trace_->add(Trace::Track::Compute, fmt::format("{} {}", step.path, step.op->name()), since_);
    since_ = Trace::Clock::now();
  }
  StepRunner& runner_;
  const plan::Plan& plan_;
  Trace::Clock::time_point since_ = Trace::Clock::now();
  std::size_t at_ = 0;  // index of the plan's present step
  std::int64_t samples_;
  bool last_, forward_known_ = false;
};

void StepRunner::add_forward(const plan::Plan& plan, std::int64_t samples) {
  if (samples == 0) return;  // the mean of no samples is NaN
  add_sums(plan, Mode::Train, samples, engine_->shard_sums());
  own_.loss_sum += plan.loss() * plan.weight();
  own_.weight += plan.weight();
  own_.samples += samples;
  std::size_t at = 0;
  const std::vector<RunningStatistics>& statistics = prepared_.nominal().statistics;
  for (std::size_t s = 0; s < statistics.size(); ++s) {
    const double* sums = plan.statistic_sums(s);
    const auto n = static_cast<std::size_t>(2 * statistics[s].mean->shape.elements());
    for (std::size_t i = 0; i < n; ++i) engine_->shard_statistics()[at++] += sums[i];
  }
}

plan::Plan& StepRunner::fill(const data::Batch& batch, Range rows, std::int64_t update) {
  plan::Plan& plan = feed_.plan(Mode::Train, rows.size());
  const StepProfile::Timer timer(profile_.get(), Part::Input);
  feed_.fill(plan, batch, rows, static_cast<std::uint64_t>(update));
  if (rows.size() > 0) damage_input(plan, update);
  return plan;
}

// The shard's micro-batches add to one slot; buckets leave during the last micro-batch's backward pass.
void StepRunner::run_shard(const LocalBatch& local, Range shard, std::int64_t update) {
  parallel::TableEngine* const tables = prepared_.tables();
  if (tables != nullptr) tables->begin_shard();
  std::int64_t last = accumulate() - 1;  // the last micro-batch that is run
  while (last > 0 && !is_run(shard, last)) --last;
  if (!is_run(shard, last)) {
    engine_->sums_ready();
    engine_->zero_gradients();
    engine_->end_shard();
    if (tables != nullptr) tables->end_shard();
    return;
  }
  for (std::int64_t micro = 0; micro <= last; ++micro) {
    const Range rows = local.rows(shard, accumulate(), micro);
    plan::Plan& plan = fill(*local.batch, rows, update);
    last_plan_ = &plan;
    if (profile_) profile_->begin_run(plan);
    if (tables != nullptr) tables->begin_pass(table_gradients(plan), micro == last);
    ShardHooks hooks(*this, plan, rows.size(), micro == last);
    run_on_rows(*local.batch, rows, [&] { plan.run({engine_->slot(), micro > 0}, hooks); });
    hooks.forward_done();  // done already, unless everything is frozen or more micro-batches follow
  }
  engine_->end_shard();
  if (tables != nullptr) tables->end_shard();
}

void StepRunner::run(const LocalBatch& local, std::int64_t update) {
  own_ = {};
  {
    const StepProfile::Timer timer(profile_.get(), Part::Communication);
    lookahead_.begin(local);
  }
  const Range mine = prepared_.world().my_shards();
  const std::int64_t shards = prepared_.world().tree.shards();
  for (std::int64_t number = mine.begin; number < mine.end; ++number)
    run_shard(local, local.shard(shards, number), update);
  if (prepared_.tables() != nullptr) prepared_.tables()->end_passes();
}

void StepRunner::repeat(const LocalBatch& local, std::int64_t update,
                        const std::function<void(plan::Plan& plan, Range rows, bool first)>& visit) {
  engine_->fence();  // after it, no rank reads this rank's gradients
  if (prepared_.tables() != nullptr) prepared_.tables()->begin_passes();
  bool first = true;
  const Range mine = prepared_.world().my_shards();
  for (std::int64_t number = mine.begin; number < mine.end; ++number) {
    const Range shard = local.shard(prepared_.world().tree.shards(), number);
    for (std::int64_t micro = 0; micro < accumulate(); ++micro) {
      if (!is_run(shard, micro)) continue;
      const Range rows = local.rows(shard, accumulate(), micro);
      prepared_.heartbeat().beat();
      visit(fill(*local.batch, rows, update), rows, std::exchange(first, false));
    }
  }
  if (prepared_.tables() != nullptr) prepared_.tables()->end_passes();
}

Tensor StepRunner::observed(const std::string& name) const {
  check(last_plan_ != nullptr, "trainer",
        "observed('{}') needs a training step with samples on this rank, after the last evaluation", name);
  return last_plan_->observed(name);
}

void StepRunner::damage_input(plan::Plan& plan, std::int64_t update) const {
  const auto damage = [&](auto change) {
    for (const data::Field& f : prepared_.fields()) {
      void* input = plan.input(f.name);
      if (input == nullptr || !is_floating(f.dtype)) continue;
      for (std::int64_t i = 0; i < f.shape.elements(); ++i) {
        if (f.dtype == DType::F64) change(static_cast<double*>(input)[i]);
        if (f.dtype == DType::F32) change(static_cast<float*>(input)[i]);
      }
    }
  };
  if (fault_wanted("batch.nan", update + 1)) {
    damage([]<class T>(T& v) { v = std::numeric_limits<T>::quiet_NaN(); });
  } else if (fault_wanted("gradient.spike", update + 1)) {
    damage([]<class T>(T& v) { v *= 1000; });
  }
}

}  // namespace lockstep::train

#include "lockstep/train/step/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lockstep/comm/agreement.h"
#include "lockstep/comm/environment.h"
#include "lockstep/core/error.h"
#include "lockstep/core/fault_point.h"
#include "lockstep/core/log.h"
#include "lockstep/kernels/registry.h"
#include "lockstep/kernels/native/vector_kernels.h"
#include "lockstep/train/step/batch_check.h"

namespace lockstep::train {
namespace {

using Part = StepProfile::Part;

// In the requests of an evaluation: a rank did not see all of its samples.
constexpr std::uint64_t kLeftEvaluation = std::uint64_t{1} << 63;

// What fails on one rank in the middle of `work` leaves it out of step with the others.
template <class Work>
void or_poison(const comm::Communicator& comm, GradientEngine& engine, const Work& work) {
  try {
    work();
  } catch (...) {
    comm.poison(comm::current_error());
    engine.fail();
    throw;
  }
}

}  // namespace

std::map<std::string, Type> Trainer::types_of(std::int64_t samples) const {
  std::map<std::string, Type> types;
  for (const data::Field& f : fields_) types[f.name] = {f.shape.batched(samples), f.dtype};
  return types;
}

Plan& Trainer::fill(Mode mode, const data::Batch& batch, Range rows, std::uint64_t step) {
  Plan*& known = plans_[{mode, rows.size()}];
  if (known == nullptr) known = &model_.plan(mode, types_of(rows.size()));
  Plan& plan = *known;
  const StepProfile::Timer timer(profile_.get(), Part::Input);
  for (const data::Field& f : fields_) {
    void* input = plan.input(f.name);
    if (input == nullptr || rows.size() == 0) continue;  // a field that the model does not read
    const Tensor& source = batch.at(f.name);
    if (source.dtype() != f.dtype || !source.shape().has_tail(f.shape)) {
      fail("trainer", "field '{}' of the batch is {}{}, the model was traced with {} per sample", f.name,
           name_of(source.dtype()), source.shape().str(), Type{f.shape, f.dtype}.str());
    }
    std::memcpy(input, source.raw() + static_cast<std::size_t>(rows.begin) * f.bytes(),
                static_cast<std::size_t>(rows.size()) * f.bytes());
  }
  if (void* number = plan.input(Graph::kStep)) *static_cast<std::int64_t*>(number) = static_cast<std::int64_t>(step);
  if (void* ids = plan.input(Graph::kSampleIds)) {
    std::copy_n(batch.step.samples.begin() + rows.begin, rows.size(), static_cast<std::int64_t*>(ids));
  }
  if (mode == Mode::Train && rows.size() > 0) damage_input(plan);
  return plan;
}

void Trainer::add_sums(const Plan& plan, std::span<double> sums, std::int64_t samples) const {
  sums[kLossSum] += plan.loss() * plan.weight();
  sums[kWeightSum] += plan.weight();
  sums[kSampleSum] += static_cast<double>(samples);
  for (std::size_t c = 0; c < counts_.size(); ++c) sums[kFirstCount + c] += plan.count(counts_[c]);
}

// What the last plan of a leaf tells the engine; the first gradient brings what forward left before it.
class Trainer::LeafHooks : public PlanHooks {
 public:
  LeafHooks(Trainer& trainer, const Plan& plan, std::int64_t samples, bool last)
      : trainer_(trainer), plan_(plan), samples_(samples), last_(last) {}

  void needs(int bucket) override {
    const StepProfile::Timer timer(trainer_.profile_.get(), Part::Wait);
    trainer_.engine_->needs(bucket);
  }
  void retired(const Parameter* parameter) override {
    if (!last_) return;
    const StepProfile::Timer timer(trainer_.profile_.get(), Part::Communication);
    forward_done();
    trainer_.engine_->retired(parameter);
  }
  void poll() override {
    trainer_.heartbeat_.beat();
    if (trainer_.trace_ != nullptr) note_step();
    if (!forward_known_ && !trainer_.engine_->late()) return;
    const StepProfile::Timer timer(trainer_.profile_.get(), Part::Communication);
    trainer_.engine_->poll();
    since_ = trainer_.trace_ != nullptr ? Trace::Clock::now() : since_;
  }
  void forward_done() {
    if (std::exchange(forward_known_, true)) return;
    trainer_.add_forward(plan_, samples_);
    if (last_) trainer_.engine_->sums_ready();
  }

 private:
  void note_step() {
    while (plan_.steps()[at_].constant) ++at_;
    const PlanStep& step = plan_.steps()[at_++];
    trainer_.trace_->add(Trace::Track::Compute, fmt::format("{} {}", step.place, step.op->name()), since_);
    since_ = Trace::Clock::now();
  }
  Trainer& trainer_;
  const Plan& plan_;
  Trace::Clock::time_point since_ = Trace::Clock::now();
  std::size_t at_ = 0;  // step of the plan
  std::int64_t samples_;
  bool last_, forward_known_ = false;
};

void Trainer::add_forward(const Plan& plan, std::int64_t samples) {
  if (samples == 0) return;  // the mean of no sample is no number
  add_sums(plan, engine_->leaf_sums(), samples);
  std::size_t at = 0;
  for (std::size_t s = 0; s < statistics_.size(); ++s) {
    const double* sums = plan.statistic_sums(s);
    const auto n = static_cast<std::size_t>(2 * statistics_[s].mean->shape.elements());
    for (std::size_t i = 0; i < n; ++i) engine_->leaf_statistics()[at++] += sums[i];
  }
}

// The leaf's micro-batches add to one slot; what they have in common leaves before the last one's backward pass is
// through.
void Trainer::run_leaf(const Local& local, Range leaf) {
  std::int64_t last = options_.accumulate - 1;  // the last micro-batch that is run
  while (last > 0 && !is_run(leaf, last)) --last;
  if (!is_run(leaf, last)) {
    engine_->sums_ready();
    engine_->zero_gradients();
    engine_->end_leaf();
    return;
  }
  for (std::int64_t micro = 0; micro <= last; ++micro) {
    const Range part = part_of(leaf.size(), options_.accumulate, micro);
    const Range rows{leaf.begin + part.begin - local.first, leaf.begin + part.end - local.first};
    Plan& plan = fill(Mode::Train, *local.batch, rows, static_cast<std::uint64_t>(updates_));
    last_plan_ = &plan;
    if (profile_) profile_->begin_run(plan);
    LeafHooks hooks(*this, plan, rows.size(), micro == last);
    run_on_rows(*local.batch, rows, [&] { plan.run({engine_->slot(), micro > 0}, hooks); });
    hooks.forward_done();  // before, unless everything is frozen or more micro-batches follow
  }
  engine_->end_leaf();
}

// A streamed batch is one leaf, and all that a rank has is its part.
Range Trainer::rows_of(const Local& local, std::int64_t leaf) const {
  if (local.global_size < 0) return {0, local.batch->samples()};
  return part_of(local.global_size, world_.tree.leaves(), leaf);
}

// After MPI_Finalize memory of several ranks is gone, and after an earlier failure the others are.
void Trainer::require_ranks() const {
  check(world_.size == 1 || comm::Environment::active(), "trainer", "MPI was finalised before this call");
  if (comm_.poisoned()) comm_.barrier();  // throws, and says what failed
}

// Loaders keep to it; a batch that was made by hand may not, and maybe on this rank alone.
void Trainer::check_batch(const data::Batch& batch) const {
  check(batch.names.size() == batch.fields.size(), "trainer", "the batch has {} fields and {} names",
        batch.fields.size(), batch.names.size());
  for (std::size_t i = 0; i < batch.fields.size(); ++i) {
    const Shape& shape = batch.fields[i].shape();
    check(shape.rank() > 0 && shape[0] == batch.samples(), "trainer",
          "field '{}' of the batch is {}, expected one row for each of the {} ids in batch.step.samples",
          batch.names[i], shape.str(), batch.samples());
  }
}

void Trainer::check_rate(double learning_rate) const {
  check(std::isfinite(learning_rate) && learning_rate >= 0, "trainer",
        "the learning rate of update {} is {}, expected a finite number, at least 0", updates_ + 1, learning_rate);
}

const Totals& Trainer::run_step(const Local& local, double learning_rate, std::uint64_t samples_word,
                                std::uint64_t position) {
  if (profile_) profile_->begin_step();
  if (trial_) {
    engine_->drive_by_thread(trial_->tries_thread());
    trial_->begin_step();
  }
  const std::int64_t step = updates_ + 1;
  const Trace::Scope span(trace_, Trace::Track::Step, "step", step);
  heartbeat_.enter_step(step);
  const auto run = [&] {
    fault_point("step.begin", step);
    std::vector<double> sums(options_.sums);
    const std::uint64_t requests = my_requests_() | my_vote_(sums);
    engine_->begin_step({.samples = samples_word,
                         .position = position,
                         .driver = trial_ ? trial_->word() : 0,
                         .requests = requests,
                         .learning_rate = learning_rate,
                         .update = step});
    std::ranges::copy(sums, engine_->leaf_sums().subspan(kFirstCount + counts_.size()).begin());
    const Range mine = world_.my_leaves();
    for (std::int64_t leaf = mine.begin; leaf < mine.end; ++leaf) run_leaf(local, rows_of(local, leaf));
    const StepProfile::Timer timer(profile_.get(), Part::Wait);
    fault_point("step.gradients", step);
    engine_->finish_step();
  };
  int attempts = 0;
  do {
    or_poison(comm_, *engine_, run);
  } while (run_again(local, attempts++));
  requests_ = engine_->requests();
  heartbeat_.enter(Heartbeat::Phase::Outside);
  if (trial_) end_trial_step();
  set_totals(engine_->sums(), totals_);
  totals_.outcome = outcome_;
  if (outcome_ == StepOutcome::RolledBack) totals_.samples = 0;
  if (totals_.samples == 0) return totals_;
  updates_ = step;
  if (outcome_ == StepOutcome::Applied) {
    const StepProfile::Timer timer(profile_.get(), Part::Update);
    const Trace::Scope statistics(statistics_.empty() ? nullptr : trace_, Trace::Track::Update,
                                  "running statistics of step", step);
    move_statistics();
    engine_->own_values_moved();
  }
  last_weight_ = totals_.weight;
  if (profile_) profile_->end_step();
  return totals_;
}

void Trainer::listen(std::function<std::uint64_t()> mine, std::uint64_t ends_evaluation) {
  check(mine != nullptr, "trainer", "there is no function to ask for requests");
  my_requests_ = std::move(mine);
  ends_evaluation_ = ends_evaluation;
}

void Trainer::vote(std::function<std::uint64_t(std::span<double> sums)> mine) {
  check(mine != nullptr, "trainer", "there is no function to ask for a vote");
  my_vote_ = std::move(mine);
}

std::span<const double> Trainer::sums() const {
  return engine_->sums().subspan(kFirstCount + counts_.size(), options_.sums);
}

void Trainer::before_update(std::function<double()> inspect) {
  check(inspect != nullptr, "trainer", "there is no function to call before an update");
  engine_->before_update([this, inspect = std::move(inspect)] {
    last_weight_ = engine_->sums()[kWeightSum];
    const double factor = inspect();
    check(std::isfinite(factor), "trainer", "the factor for the gradient of update {} is {}, expected a finite number",
          updates_ + 1, factor);
    return factor;
  });
}

void Trainer::end_trial_step() {
  trial_->end_step();
  const std::uint64_t decided = engine_->root_driver();
  if (decided == OverlapTrial::kUndecided) return;
  engine_->drive_by_thread(decided == OverlapTrial::kThread);
  if (comm_.is_root()) {
    log()->info("communication: driven {}: a step takes {:.1f} ms with a thread for it, {:.1f} ms without",
                decided == OverlapTrial::kThread ? "by a thread" : "between the plan's steps", 1e3 * trial_->with(),
                1e3 * trial_->without());
  }
  trial_.reset();
}

const Totals& Trainer::step(const data::Batch& batch, double learning_rate) {
  require_ranks();
  const data::StepSamples& s = batch.step;
  const Range leaves = world_.my_leaves();
  const std::int64_t begin = part_of(s.global_size, world_.tree.leaves(), leaves.begin).begin;
  const std::int64_t end = part_of(s.global_size, world_.tree.leaves(), leaves.end - 1).end;
  check_batch(s.global_size);
  or_poison(comm_, *engine_, [&] {
    check(s.local == Range{begin, end} && batch.samples() == end - begin, "trainer",
          "the batch holds {} samples, [{}, {}) of {}; this rank's part is [{}, {})", batch.samples(), s.local.begin,
          s.local.end, s.global_size, begin, end);
    check_rate(learning_rate);
    check_batch(batch);
  });
  return run_step({&batch, begin, s.global_size}, learning_rate, static_cast<std::uint64_t>(s.global_size),
                  position_word(s.epoch, s.offset));
}

const Totals& Trainer::step(const std::optional<data::Batch>& streamed, double learning_rate) {
  require_ranks();
  const data::Batch none;
  const data::Batch& batch = streamed ? *streamed : none;
  or_poison(comm_, *engine_, [&] {
    check(options_.shards == 0, "trainer",
          "streams have no shards: each rank's samples are its own; {} shards were asked for", options_.shards);
    check_rate(learning_rate);
    check_batch(batch);
  });
  return run_step({&batch, 0, -1}, learning_rate, 0, 0);
}

Totals Trainer::evaluate(data::Loader& loader, const std::function<void(std::int64_t)>& progress) {
  const Range leaves = world_.my_leaves();
  const std::size_t width = kFirstCount + counts_.size();
  require_ranks();
  std::vector<std::vector<double>> sums(static_cast<std::size_t>(leaves.size()), std::vector<double>(width));
  last_plan_ = nullptr;  // its memory is the evaluation's now
  std::uint64_t requests = 0;
  heartbeat_.enter(Heartbeat::Phase::Evaluating);
  or_poison(comm_, *engine_, [&] {
    requests = my_requests_();
    heartbeat_.wait();
    engine_->average_replicas();
    engine_->fence();
    heartbeat_.beat();
    for (const data::Batch& batch : loader.epoch()) {
      heartbeat_.beat();
      requests |= my_requests_();
      if ((requests & ends_evaluation_) != 0) {
        requests |= kLeftEvaluation;
        break;
      }
      check_batch(batch);
      const std::int64_t first = batch.step.local.begin;
      for (std::int64_t leaf = leaves.begin; leaf < leaves.end; ++leaf) {
        const Range part = part_of(batch.step.global_size, world_.tree.leaves(), leaf);
        if (part.size() == 0) continue;
        check(part.begin >= first && part.end - first <= batch.samples(), "trainer",
              "the batch to evaluate holds [{}, {}) of {} samples, this rank's part is [{}, {}): give its loader "
              "Trainer::sampler()",
              first, first + batch.samples(), batch.step.global_size, part.begin, part.end);
        const Range rows{part.begin - first, part.end - first};
        Plan& plan = fill(Mode::Eval, batch, rows, 0);
        run_on_rows(batch, rows, [&] { plan.run(); });
        add_sums(plan, sums[static_cast<std::size_t>(leaf - leaves.begin)], part.size());
      }
      if (progress) progress(batch.step.offset + batch.step.global_size);
    }
    heartbeat_.wait();
    add_up(sums, requests);
  });
  heartbeat_.enter(Heartbeat::Phase::Outside);
  Totals result;
  set_totals(evaluation_->block().sums(), result);
  requests_ = evaluation_->block().any(kRequestWord);
  result.whole = (requests_ & kLeftEvaluation) == 0;
  requests_ &= ~kLeftEvaluation;
  return result;
}

// Over all ranks' leaves, through messages: evaluations are rare.
void Trainer::add_up(const std::vector<std::vector<double>>& sums, std::uint64_t requests) {
  ControlBlock& block = evaluation_->block();
  block.words()[kRequestWord] = requests;
  block.begin();
  for (const auto& leaf : sums) {
    std::ranges::copy(leaf, block.leaf().begin());
    block.end_leaf();
  }
  evaluation_->finish();
}

void Trainer::set_totals(std::span<const double> sums, Totals& t) const {
  t.weight = sums[kWeightSum];
  t.samples = static_cast<std::int64_t>(sums[kSampleSum]);
  t.loss = t.weight > 0 ? sums[kLossSum] / t.weight : 0;
  for (std::size_t c = 0; c < counts_.size(); ++c) t.counts[counts_[c]] = sums[kFirstCount + c];
}

void Trainer::move_statistics() {
  ParameterStore& store = model_.parameters();
  std::span<const double> all = engine_->statistics();
  for (const RunningStatistics& s : statistics_) {
    const auto channels = static_cast<std::size_t>(s.mean->shape.elements());
    const double samples = engine_->sums()[kSampleSum];
    const RunningUpdate update{.momentum = s.momentum,
                               .count = samples * static_cast<double>(s.per_sample),
                               .sums = all.first(channels),
                               .squares = all.subspan(channels, channels)};
    void *mean = store.value(s.mean), *variance = store.value(s.variance);
    if (options_.precision == DType::F64) {
      move_running_statistics(update, static_cast<double*>(mean), static_cast<double*>(variance));
    } else {
      move_running_statistics(update, static_cast<float*>(mean), static_cast<float*>(variance));
    }
    store.refresh(s.mean);
    store.refresh(s.variance);
    ++*static_cast<std::int64_t*>(store.value(s.batches));
    all = all.subspan(2 * channels);
  }
}

std::string Trainer::kernels() const {
  const CompileOptions& compile = model_.options();
  return fmt::format("{} {} {} {} choices {:016x}", vector_level(), onednn_version(),
                     compile.bf16 ? "bf16" : name_of(options_.precision),
                     compile.kernels.conv_math == KernelOptions::ConvMath::Exact ? "exact" : "fast", choices_);
}

std::size_t Trainer::bytes() const { return model_.bytes() + (world_.size > 1 ? engine_->bytes() : 0); }

}  // namespace lockstep::train

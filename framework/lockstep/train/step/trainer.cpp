#include "lockstep/train/step/trainer.h"

#include <algorithm>
#include <cmath>

#include "lockstep/comm/agreement.h"
#include "lockstep/comm/environment.h"
#include "lockstep/core/error.h"
#include "lockstep/core/fault_point.h"
#include "lockstep/parallel/reduce/self_test.h"
#include "lockstep/train/step/running_statistics.h"
#include "lockstep/train/step/step_sums.h"

namespace lockstep::train {
namespace {

using Part = StepProfile::Part;

parallel::EngineOptions engine_options(PreparedModel& prepared, const DriverTrial& driver) {
  const TrainerOptions& o = prepared.options();
  return {.statistics = prepared.nominal().statistic_doubles(),
          .counts = prepared.nominal().counts.size() + o.sums,
          .clip_norm = o.clip_norm,
          .shard_optimizer = o.parallel.shard_optimizer,
          .thread = driver.begins_with_thread(),
          .late_updates = o.parallel.late_updates,
          .local_steps = o.parallel.local_steps,
          .reduction = {.wire = o.parallel.wire, .hook = o.parallel.hook.get()},
          .heartbeat = &prepared.heartbeat(),
          .guards = o.guards.engine()};
}

// Makes progress in other communication, while a call waits for all ranks: they may wait for that communication.
std::function<void()> meanwhile(PreparedModel& prepared, parallel::GradientEngine& engine) {
  return [&prepared, &engine] {
    prepared.heartbeat().wait();
    engine.progress();
  };
}

void check_sums(PreparedModel& prepared) {
  const ParallelOptions& o = prepared.options().parallel;
  if (prepared.world().size > 1 && !o.hook)
    parallel::check_paths(prepared.comm(), {.domains = prepared.memory().domains(), .reduction = {.wire = o.wire}});
}

}  // namespace

Trainer::Trainer(const comm::Communicator& comm, const nn::Module& module, const plan::ModelFunction& model,
                 std::vector<data::Field> fields, TrainerOptions options)
    : prepared_(comm, module, model, std::move(fields), std::move(options)),
      driver_(prepared_),
      engine_(prepared_.comm(), prepared_.world(), prepared_.memory(), prepared_.store(), prepared_.updater(),
              engine_options(prepared_, driver_)),
      votes_(prepared_.options().sums),
      feed_(prepared_),
      runner_(prepared_, engine_, feed_),
      evaluator_(prepared_, engine_, feed_, votes_, meanwhile(prepared_, engine_)),
      state_(prepared_, engine_),
      guard_(prepared_, engine_, runner_, state_) {
  check_sums(prepared_);
  if (prepared_.collective() != nullptr) prepared_.collective()->while_waiting(meanwhile(prepared_, engine_));
  state_.broadcast_weights();
}

// Other ranks may be in a step: tells them that this rank makes no more steps before it waits for them.
Trainer::~Trainer() { engine_.leave(); }

// Called in a handler: tells the other ranks the error.
void Trainer::poison() {
  prepared_.comm().poison(comm::current_error());
  engine_.fail();
}

// Runs `work` and poisons the communicator if it throws: the rank is then out of step with the other ranks.
template <class Work>
void Trainer::or_poison(const Work& work) {
  try {
    work();
  } catch (...) {
    poison();
    throw;
  }
}

// The same of work between steps, which an AgreedError ends on all ranks alike.
template <class Work>
bool Trainer::agreed_or_poison(const Work& work) {
  try {
    return work();
  } catch (const comm::AgreedError&) {
    throw;
  } catch (...) {
    poison();
    throw;
  }
}

std::size_t Trainer::bytes() const { return prepared_.model().bytes() + (world().size > 1 ? engine_.bytes() : 0); }

std::span<const double> Trainer::sums() const {
  return engine_.sums().subspan(parallel::kFirstCount + prepared_.nominal().counts.size(), options().sums);
}

// After MPI_Finalize, shared memory is gone; after an earlier failure, other ranks are.
void Trainer::require_ranks() const {
  check(world().size == 1 || comm::Environment::active(), "trainer", "MPI was finalised before this call");
  if (prepared_.comm().poisoned()) prepared_.comm().barrier();  // throws the reason of the poison
}

void Trainer::check_rate(double learning_rate) const {
  check(std::isfinite(learning_rate) && learning_rate >= 0, "trainer",
        "the learning rate of update {} is {}, expected a finite number, at least 0", updates() + 1, learning_rate);
}

const Totals& Trainer::run_step(const LocalBatch& local, parallel::StepStart start) {
  if (StepProfile* profile = runner_.profile()) profile->begin_step();
  driver_.begin_step(engine_);
  start.update = updates() + 1;
  const Trace::Scope span(runner_.trace(), Trace::Track::Step, "step", start.update);
  prepared_.heartbeat().enter_step(start.update);
  const auto run = [&] {
    fault_point("step.begin", start.update);
    start.driver = driver_.word();
    start.requests = votes_.ask_for_step();
    engine_.begin_step(start);
    std::ranges::copy(votes_.sums(),
                      engine_.shard_sums().subspan(parallel::kFirstCount + prepared_.nominal().counts.size()).begin());
    runner_.run(local, updates());
    const StepProfile::Timer timer(runner_.profile(), Part::Wait);
    fault_point("step.gradients", start.update);
    engine_.finish_step();
  };
  int attempts = 0;
  do {
    or_poison(run);
  } while (agreed_or_poison([&] { return guard_.run_again(local, start.update, attempts++); }));
  votes_.agreed(engine_.requests());
  prepared_.heartbeat().enter(Heartbeat::Phase::Outside);
  or_poison([&] { driver_.end_step(engine_); });
  set_totals(engine_.sums(), prepared_.nominal(), totals_);
  totals_.outcome = guard_.outcome();
  if (totals_.outcome == StepOutcome::RolledBack) totals_.samples = 0;
  if (totals_.samples > 0) finish_update();
  return totals_;
}

// Finishes a step with samples, which was applied or skipped.
void Trainer::finish_update() {
  const std::int64_t update = updates() + 1;
  state_.applied(update);
  if (totals_.outcome == StepOutcome::Applied) {
    const bool has_statistics = !prepared_.nominal().statistics.empty();
    const StepProfile::Timer timer(runner_.profile(), Part::Update);
    const Trace::Scope span(has_statistics ? runner_.trace() : nullptr, Trace::Track::Update,
                            "running statistics of step", update);
    move_running_statistics(prepared_, engine_);
    engine_.own_values_moved();
  }
  last_weight_ = totals_.weight;
  if (StepProfile* profile = runner_.profile()) profile->end_step();
}

bool Trainer::verify() {
  return agreed_or_poison([&] { return guard_.memory().verify(); });
}

void Trainer::listen(std::function<std::uint64_t()> mine, std::uint64_t ends_evaluation) {
  votes_.listen(std::move(mine), ends_evaluation);
}

void Trainer::vote(std::function<std::uint64_t(std::span<double> sums)> mine) { votes_.vote(std::move(mine)); }

void Trainer::before_update(std::function<double()> inspect) {
  check(inspect != nullptr, "trainer", "before_update() got an empty function, expected one that returns a factor");
  engine_.before_update([this, inspect = std::move(inspect)] {
    last_weight_ = engine_.sums()[parallel::kWeightSum];
    const double factor = inspect();
    check(std::isfinite(factor), "trainer", "the factor for the gradient of update {} is {}, expected a finite number",
          updates() + 1, factor);
    return factor;
  });
}

const Totals& Trainer::step(const data::Batch& batch, double learning_rate) {
  require_ranks();
  const data::StepSamples& s = batch.step;
  const Range shards = world().my_shards();
  const std::int64_t begin = part_of(s.global_size, world().tree.shards(), shards.begin).begin;
  const std::int64_t end = part_of(s.global_size, world().tree.shards(), shards.end - 1).end;
  check_batch(s.global_size);
  or_poison([&] {
    check(s.local == Range{begin, end} && batch.samples() == end - begin, "trainer",
          "the batch has {} samples, [{}, {}) of {}; expected this rank's part, [{}, {})", batch.samples(),
          s.local.begin, s.local.end, s.global_size, begin, end);
    check_rate(learning_rate);
    BatchFeed::check_batch(batch);
  });
  return run_step({&batch, begin, s.global_size}, {.samples = static_cast<std::uint64_t>(s.global_size),
                                                   .position = parallel::position_word(s.epoch, s.offset),
                                                   .learning_rate = learning_rate});
}

const Totals& Trainer::step(const std::optional<data::Batch>& streamed, double learning_rate) {
  require_ranks();
  const data::Batch none;
  const data::Batch& batch = streamed ? *streamed : none;
  or_poison([&] {
    check(options().shards == 0, "trainer",
          "a streamed batch with {} shards, expected 0: streams cannot be divided into shards", options().shards);
    check_rate(learning_rate);
    BatchFeed::check_batch(batch);
  });
  return run_step({&batch, 0, -1}, {.learning_rate = learning_rate});
}

Totals Trainer::evaluate(data::Loader& loader, const std::function<void(std::int64_t)>& progress) {
  require_ranks();
  runner_.forget();  // the evaluation reuses the memory of the last step
  prepared_.heartbeat().enter(Heartbeat::Phase::Evaluating);
  Totals totals;
  or_poison([&] { totals = evaluator_.run(loader, progress); });
  prepared_.heartbeat().enter(Heartbeat::Phase::Outside);
  return totals;
}

std::vector<io::NamedTensor> Trainer::state(bool wanted) {
  guard_.memory().require_intact();
  return state_.state(wanted);
}

void Trainer::snapshot(checkpoint::StateSnapshot* into) {
  guard_.memory().require_intact();
  state_.snapshot(into);
}

void Trainer::load(const io::TensorSource& of_root, const std::string& file, std::int64_t updates) {
  state_.load(of_root, file, updates);
}

void Trainer::load(const std::vector<io::NamedTensor>& tensors, std::int64_t updates, bool weights_only) {
  state_.load(tensors, updates, weights_only);
}

checkpoint::LoadReport Trainer::load_weights(const std::filesystem::path& file,
                                             const checkpoint::LoadOptions& options) {
  return state_.load_weights(file, options);
}

data::DistributedSampler Trainer::sampler(const data::Dataset& dataset, const SamplingOptions& options) const {
  return data::DistributedSampler(
      {.size = dataset.size(),
       .global_batch = options.global_batch > 0 ? options.global_batch : prepared_.options().global_batch,
       .shards = prepared_.world().tree.shards(),
       .my_shards = prepared_.world().my_shards(),
       .seed = prepared_.options().seed,
       .shuffle = options.shuffle,
       .remainder = options.remainder});
}

}  // namespace lockstep::train

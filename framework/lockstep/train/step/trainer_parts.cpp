#include "lockstep/train/step/trainer_parts.h"

#include <algorithm>
#include <cmath>

#include "lockstep/comm/environment.h"
#include "lockstep/core/error.h"
#include "lockstep/core/fault_point.h"
#include "lockstep/parallel/reduce/self_test.h"
#include "lockstep/train/runner/step_sums.h"
#include "lockstep/train/state/running_statistics.h"
#include "lockstep/train/step/order_word.h"

namespace lockstep::train {
namespace {

using Part = StepProfile::Part;

parallel::EngineGuards engine_guards(const GuardOptions& o) {
  const bool limits = o.gradient.norm > 0 || o.gradient.spike > 0;
  return {.verify_every = o.verify_every,
          .compare_every = o.compare_every,
          .hold_loss = o.action != GuardAction::Log,
          .hold_gradient = o.action == GuardAction::Skip || (o.action == GuardAction::Stop && limits),
          .gradient = o.gradient};
}

parallel::EngineOptions engine_options(PreparedModel& prepared, const DriverTrial& driver) {
  const TrainerOptions& o = prepared.options();
  return {.statistics = prepared.nominal().statistic_doubles(),
          .sums = prepared.nominal().sums(Mode::Train) + o.sums,
          .clip_norm = o.clip_norm,
          .noise = o.noise_scale,
          .shard_optimizer = o.parallel.shard_optimizer,
          .thread = driver.begins_with_thread(),
          .late_updates = o.parallel.late_updates,
          .local_steps = o.parallel.local_steps,
          .reduction = {.wire = o.parallel.wire, .hook = o.parallel.hook.get()},
          .heartbeat = &prepared.heartbeat(),
          .between = {.meaning = "what callbacks order",
                      .advice = "; a callback decides by values that all ranks know: totals, sums and votes",
                      .text = order_text},
          .guards = engine_guards(o.guards)};
}

void check_sums(PreparedModel& prepared) {
  const ParallelOptions& o = prepared.options().parallel;
  if (prepared.world().size > 1 && !o.hook)
    parallel::check_paths(prepared.comm(), {.domains = prepared.memory().domains(), .reduction = {.wire = o.wire}});
}

}  // namespace

TrainerParts::TrainerParts(const comm::Communicator& comm, const nn::Module& module, const plan::ModelFunction& model,
                           std::vector<data::Field> fields, TrainerOptions options)
    : prepared(comm, module, model, std::move(fields), std::move(options)),
      driver(prepared),
      engine(prepared.comm(), prepared.world(), prepared.memory(), prepared.store(), prepared.updater(),
             engine_options(prepared, driver)),
      meanwhile([this] {
        prepared.heartbeat().wait();
        engine.progress();
      }),
      votes(prepared.options().sums),
      feed(prepared),
      runner(prepared, engine, feed),
      evaluator(prepared, engine, feed, votes, meanwhile),
      state(prepared, engine),
      guard(prepared, engine, runner, state) {
  check_sums(prepared);
  if (parallel::TableEngine* tables = prepared.tables(); tables != nullptr) {
    tables->while_waiting(meanwhile);
    engine.attach(*tables);
  }
  if (prepared.collective() != nullptr) prepared.collective()->while_waiting(meanwhile);
  state.broadcast_weights();
}

void TrainerParts::poison() {
  prepared.comm().poison(comm::current_error());
  engine.fail();
}

void TrainerParts::require_ranks() const {
  check(world().size == 1 || comm::Environment::active(), "trainer", "MPI was finalised before this call");
  if (prepared.comm().poisoned()) prepared.comm().barrier();  // throws the reason of the poison
}

void TrainerParts::check_rate(double learning_rate) const {
  check(std::isfinite(learning_rate) && learning_rate >= 0, "trainer",
        "the learning rate of update {} is {}, expected a finite number, at least 0", state.updates() + 1,
        learning_rate);
}

const Totals& TrainerParts::run_step(const LocalBatch& local, parallel::StepStart start) {
  if (StepProfile* profile = runner.profile()) profile->begin_step();
  driver.begin_step(engine);
  start.update = state.updates() + 1;
  const Trace::Scope span(runner.trace(), Trace::Track::Step, "step", start.update);
  prepared.heartbeat().enter_step(start.update);
  const auto run = [&] {
    fault_point("step.begin", start.update);
    start.driver = driver.word();
    start.requests = votes.ask_for_step();
    engine.begin_step(start);
    if (prepared.tables() != nullptr) prepared.tables()->begin_step();
    std::ranges::copy(votes.sums(),
                      engine.shard_sums().subspan(parallel::kOtherSums + prepared.nominal().sums(Mode::Train)).begin());
    runner.run(local, state.updates());
    const StepProfile::Timer timer(runner.profile(), Part::Wait);
    fault_point("step.gradients", start.update);
    engine.finish_step();
  };
  int attempts = 0;
  try {
    do {
      or_poison(run);
    } while (agreed_or_poison([&] { return guard.run_again(local, start.update, attempts++); }));
  } catch (...) {
    runner.lookahead().end_step();  // the caller may free the batch that it announced
    prepared.heartbeat().enter(Heartbeat::Phase::Outside);
    throw;
  }
  runner.lookahead().end_step();
  votes.agreed(engine.requests());
  prepared.heartbeat().enter(Heartbeat::Phase::Outside);
  or_poison([&] { driver.end_step(engine); });
  set_totals(engine.sums(), prepared.nominal(), Mode::Train, totals);
  totals.outcome = guard.outcome();
  if (totals.outcome == StepOutcome::RolledBack) totals.samples = 0;
  if (totals.samples > 0) finish_update();
  return totals;
}

const Totals& TrainerParts::run_streamed(const data::Batch& batch, double learning_rate) {
  require_ranks();
  or_poison([&] {
    check(options().shards == 0, "trainer",
          "a streamed batch with {} shards, expected 0: streams cannot be divided into shards", options().shards);
    check_rate(learning_rate);
    BatchFeed::check_batch(batch);
  });
  return run_step({&batch, 0, -1}, {.learning_rate = learning_rate});
}

// Finishes a step with samples, which was applied or skipped.
void TrainerParts::finish_update() {
  const std::int64_t update = state.updates() + 1;
  state.applied(update);
  if (totals.outcome == StepOutcome::Applied) {
    const bool has_statistics = !prepared.nominal().statistics.empty();
    const StepProfile::Timer timer(runner.profile(), Part::Update);
    const Trace::Scope span(has_statistics ? runner.trace() : nullptr, Trace::Track::Update,
                            "running statistics of step", update);
    move_running_statistics(prepared, engine);
    engine.own_values_moved();
    state.averages().update();
    if (const auto& noise = engine.gradient_noise(); noise) state.noise().add(*noise);
    totals.noise_scale = state.noise().scale();
  }
  last_weight = totals.weight;
  if (StepProfile* profile = runner.profile()) profile->end_step();
}

}  // namespace lockstep::train

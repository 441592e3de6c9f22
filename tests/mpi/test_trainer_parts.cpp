// The parts of a trainer, each by itself; what they do together is tested by the other test_trainer_*.
#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/train/guard/gradient_policy.h"
#include "lockstep/train/guard/memory_recovery.h"
#include "lockstep/train/guard/nonfinite.h"
#include "lockstep/train/guard/step_guard.h"
#include "lockstep/train/guard/suspects.h"
#include "lockstep/train/runner/batch_feed.h"
#include "lockstep/train/runner/step_runner.h"
#include "lockstep/train/state/trainer_state.h"
#include "lockstep/train/state/weight_averages.h"
#include "lockstep/train/step/driver_trial.h"
#include "lockstep/train/step/evaluator.h"
#include "lockstep/train/step/step_votes.h"
#include "tests/mpi/captured_log.h"
#include "tests/mpi/training.h"

namespace lockstep::test {
namespace {

using namespace train;

// The state of which all parts are made, as a trainer makes it.
struct TrainerParts {
  Task task;
  std::unique_ptr<data::TensorDataset> dataset = make_images(task.samples, task.channels, task.side);
  std::unique_ptr<models::Classifier> network = task.network();
  PreparedModel prepared{world(), *network, task.model(*network), dataset->fields(), task.options};
  parallel::GradientEngine engine{prepared.comm(),
                                  prepared.world(),
                                  prepared.memory(),
                                  prepared.store(),
                                  prepared.updater(),
                                  {.sums = prepared.nominal().sums(Mode::Train),
                                   .guards = {.hold_loss = task.options.guards.action != GuardAction::Log}}};
  BatchFeed feed{prepared};
  StepRunner runner{prepared, engine, feed};
  TrainerState state{prepared, engine};

  // Runs a step with the next batch, in which this rank's pixels are not finite if `bad`.
  data::Batch run_step(bool bad) {
    data::Batch batch = next_batch();
    if (bad && batch.samples() > 0) batch.at("image").data<float>()[0] = kNan;
    engine.begin_step({.samples = static_cast<std::uint64_t>(batch.step.global_size), .learning_rate = 0, .update = 1});
    runner.run({&batch, batch.step.local.begin, batch.step.global_size}, 0);
    engine.finish_step();
    return batch;
  }
  void add_to_weights(float difference) {
    plan::ParameterStore& store = prepared.store();
    engine.fence();
    for (const NamedParameter& p : store.parameters()) {
      Tensor value = store.read(p.name);
      for (float& v : value.data<float>()) v += difference;
      world().barrier();
      if (world().is_root() || !store.memory().shares()) store.write(p.name, value);
      world().barrier();
    }
    engine.fence();
  }

  data::Batch next_batch() {
    const parallel::WorldLayout& where = prepared.world();
    data::Loader loader(*dataset,
                        data::DistributedSampler({.size = dataset->size(),
                                                  .global_batch = task.options.global_batch,
                                                  .shards = where.tree.shards(),
                                                  .my_shards = where.my_shards(),
                                                  .seed = task.options.seed}),
                        {}, {.threads = 0});
    return loader.next();
  }
};

TEST(StepVotes, AsksForRequestsAndSumsOfEachStepAnew) {
  StepVotes votes(2);
  votes.listen([] { return std::uint64_t{1}; }, 4);
  votes.vote([](std::span<double> sums) {
    sums[1] += 3;
    return std::uint64_t{16};
  });
  EXPECT_EQ(votes.ask(), 1U) << "an evaluation asks for requests alone";
  for (int step = 0; step < 2; ++step) {
    EXPECT_EQ(votes.ask_for_step(), 17U);
    EXPECT_EQ(votes.sums()[0], 0);
    EXPECT_EQ(votes.sums()[1], 3) << "zero at first in each step";
  }
  EXPECT_TRUE(votes.ends_evaluation(4 | 1));
  EXPECT_FALSE(votes.ends_evaluation(1));
  EXPECT_THROW(votes.listen(nullptr, 0), Error);
  EXPECT_THROW(votes.vote(nullptr), Error);
}

TEST(PreparedModel, IsAlikeOnAllRanksAndKnowsItsNominalPlan) {
  TrainerParts parts;
  EXPECT_EQ(parts.prepared.nominal().metrics.at(0).rule.name, "accuracy");
  EXPECT_FALSE(parts.prepared.nominal().is_collective);
  EXPECT_EQ(parts.prepared.nominal().statistic_doubles(), 0U) << "a perceptron has no batch norm";
  EXPECT_EQ(parts.prepared.types_of(7).at("image").shape[0], 7);
  for (const std::string& kernels : world().allgather_strings(parts.prepared.kernels()))
    EXPECT_EQ(kernels, parts.prepared.kernels());
}

TEST(BatchFeed, FillsTheInputsOfAPlanThatItFindsAgain) {
  TrainerParts parts;
  const data::Batch batch = parts.next_batch();
  const std::int64_t rows = batch.samples() - 1;
  plan::Plan& plan = parts.feed.plan(Mode::Train, rows);
  EXPECT_EQ(&parts.feed.plan(Mode::Train, rows), &plan);
  EXPECT_NE(&parts.feed.plan(Mode::Eval, rows), &plan);
  parts.feed.fill(plan, batch, {1, rows + 1}, 0);
  const auto* image = static_cast<const float*>(plan.input("image"));
  ASSERT_NE(image, nullptr);
  EXPECT_EQ(image[0], batch.at("image").data<float>()[36]) << "row 1 of images of 36 pixels";
}

TEST(BatchFeed, NamesWhatIsWrongWithABatch) {
  TrainerParts parts;
  data::Batch batch = parts.next_batch();
  batch.fields[0] = batch.fields[0].to(DType::F64);
  plan::Plan& plan = parts.feed.plan(Mode::Train, batch.samples());
  EXPECT_NE(error_of([&] {
              parts.feed.fill(plan, batch, {0, batch.samples()}, 0);
            }).find("field 'image' of the batch"),
            std::string::npos);
  batch.names.pop_back();
  EXPECT_NE(error_of([&] { BatchFeed::check_batch(batch); }).find("2 fields and 1 names"), std::string::npos);
}

TEST(StepRunner, MakesTheGradientThatARepetitionMakesAgain) {
  TrainerParts parts;
  const data::Batch batch = parts.next_batch();
  const LocalBatch local{&batch, batch.step.local.begin, batch.step.global_size};
  EXPECT_THROW(parts.runner.observed("anything"), Error) << "no step was run";
  parts.engine.begin_step(
      {.samples = static_cast<std::uint64_t>(batch.step.global_size), .learning_rate = 0, .update = 1});
  parts.runner.run(local, 0);
  parts.engine.finish_step();
  EXPECT_EQ(parts.engine.sums()[parallel::kSampleSum], batch.step.global_size);
  double loss = 0, again = 0;
  std::int64_t rows = 0;
  for (double* sum : {&loss, &again}) {
    rows = 0;
    parts.runner.repeat(local, 0, [&](plan::Plan& plan, Range part, bool first) {
      plan.run({0, !first});
      *sum += plan.loss() * plan.weight();
      rows += part.size();
    });
  }
  EXPECT_EQ(rows, batch.samples());
  EXPECT_EQ(loss, again);
  world().barrier();
}

// A watchdog sees that the rank moves while it examines a step.
TEST(StepRunner, BeatsInARepetition) {
  Heartbeat::Row row;
  TrainerParts parts;
  parts.state.broadcast_weights();
  Heartbeat& heartbeat = parts.prepared.heartbeat();
  heartbeat.attach(row);
  const data::Batch batch = parts.next_batch();
  std::uint64_t beats = row.beats.load();
  parts.runner.repeat({&batch, batch.step.local.begin, batch.step.global_size}, 0,
                      [&](plan::Plan& plan, Range /*rows*/, bool first) {
                        EXPECT_GT(row.beats.load(), beats) << "before each micro-batch";
                        beats = row.beats.load();
                        NonFiniteFinder finder(plan, heartbeat);
                        plan.run({0, !first}, finder);
                        const auto steps = std::ranges::count(plan.steps(), false, &plan::PlanStep::constant);
                        EXPECT_EQ(row.beats.load() - beats, static_cast<std::uint64_t>(steps));
                        beats = row.beats.load();
                      });
  heartbeat.detach();
  world().barrier();
}

TEST(TrainerState, IsLoadedAsItWasHandedOut) {
  TrainerParts parts;
  parts.state.broadcast_weights();
  parts.state.applied(5);
  const std::uint64_t hash = parts.state.weights_hash();
  const auto tensors = parts.state.state(true);
  plan::ParameterStore& store = parts.prepared.store();
  const std::string name = store.parameters().front().name;
  Tensor other = store.read(name);
  other.data<float>()[0] += 1;
  parts.engine.fence();
  if (world().is_root() || !store.memory().shares()) store.write(name, other);
  parts.engine.fence();
  EXPECT_NE(parts.state.weights_hash(), hash);
  world().barrier();
  parts.state.load(tensors, 3, false);
  EXPECT_EQ(parts.state.updates(), 3);
  EXPECT_EQ(parts.state.weights_hash(), hash);
  world().barrier();
}

TEST(Suspects, ARankThatIsSuspectedAgainGetsTheKnownProductRight) {
  Suspects suspects(world());
  EXPECT_NO_THROW(suspects.suspect(0, 1));
  EXPECT_NO_THROW(suspects.suspect(0, 1));
  EXPECT_EQ(name_of(world(), 0), "rank 0 on " + world().topology().host(0));
}

TEST(MemoryRecovery, LeavesIntactMemoryAlone) {
  TrainerParts parts;
  parts.state.broadcast_weights();
  Suspects suspects(world());
  MemoryRecovery recovery(parts.prepared.comm(), OnMismatch::RollBack, parts.engine, parts.state, suspects);
  int rolled_back = 0;
  recovery.on_roll_back([&] { return ++rolled_back > 0; });
  EXPECT_TRUE(recovery.verify());
  recovery.require_intact();
  EXPECT_EQ(rolled_back, 0);
}

Task guarded(GuardAction action) {
  Task task;
  task.options.guards.action = action;
  return task;
}

TEST(GradientPolicy, WarnsOfAppliedStepsAtGrowingIntervals) {
  TrainerParts parts{.task = guarded(GuardAction::Log)};
  parts.state.broadcast_weights();
  Suspects suspects(world());
  StepInspection inspection(parts.prepared, parts.runner);
  GradientPolicy policy(parts.prepared.comm(), GuardAction::Log, parts.engine, inspection, suspects);
  const CapturedLog log;
  parts.run_step(false);
  policy.accept(1);
  EXPECT_EQ(log.text(), "");
  parts.run_step(true);
  for (int update = 2; update <= 5; ++update) policy.accept(update);
  if (!world().is_root()) {
    EXPECT_EQ(log.text(), "");
    return;
  }
  expect_contains(log.text(), "update 2: the loss of rank 0 on ");
  expect_contains(log.text(), "(warning 2)");
  EXPECT_EQ(log.text().find("(warning 3)"), std::string::npos);
  expect_contains(log.text(), "(warning 4)");
}

TEST(GradientPolicy, SkipsOrStopsAtALossThatIsNotFiniteTwice) {
  for (const GuardAction action : {GuardAction::Skip, GuardAction::Stop}) {
    TrainerParts parts{.task = guarded(action)};
    parts.state.broadcast_weights();
    Suspects suspects(world());
    StepInspection inspection(parts.prepared, parts.runner);
    GradientPolicy policy(parts.prepared.comm(), action, parts.engine, inspection, suspects);
    const CapturedLog log;
    const data::Batch batch = parts.run_step(true);
    const LocalBatch local{&batch, batch.step.local.begin, batch.step.global_size};
    ASSERT_EQ(parts.engine.verdict(), parallel::StepVerdict::BadLoss);
    if (action == GuardAction::Stop) {
      expect_contains(error_of([&] { policy.refuse(local, 1, 0); }), "update 1: the loss is nan");
      EXPECT_EQ(policy.skipped(), 0);
      continue;
    }
    for (int update = 1; update <= 10; ++update) EXPECT_FALSE(policy.refuse(local, update, 0));
    EXPECT_EQ(policy.skipped(), 10);
    if (world().is_root()) expect_contains(log.text(), "update 10 is skipped, number 10 of this run: the loss is nan");
    expect_contains(error_of([&] { policy.refuse(local, 11, 0); }), "the 10 updates before it were skipped");
  }
}

// The first elements of the first parameter.
float first_weight(TrainerParts& parts) {
  return parts.prepared.store().read(parts.prepared.store().parameters().front().name).data<float>()[0];
}

TEST(WeightAverages, OfNoOptionsDoNothing) {
  TrainerParts parts;
  parts.state.broadcast_weights();
  WeightAverages averages(parts.prepared, parts.engine);
  averages.begin();
  averages.add();
  EXPECT_FALSE(averages.exists());
  EXPECT_TRUE(averages.state().empty());
}

TEST(WeightAverages, AMovingOneBeginsWithTheWeightsAndIsPutInTheirPlace) {
  Task task;
  task.options.average.ema = 0.9;
  TrainerParts parts{.task = task};
  parts.state.broadcast_weights();
  WeightAverages averages(parts.prepared, parts.engine);
  averages.begin();
  ASSERT_TRUE(averages.exists());
  ASSERT_EQ(averages.state().size(), 1u) << "the count alone: a perceptron has no running statistics";
  const float before = first_weight(parts);
  parts.add_to_weights(1);
  averages.use(true);
  EXPECT_EQ(first_weight(parts), before);
  averages.use(false);
  EXPECT_EQ(first_weight(parts), before + 1);
  world().barrier();
}

TEST(WeightAverages, AMeanHasTheWeightsThatAreAdded) {
  Task task;
  task.options.average.swa_start = 1;
  TrainerParts parts{.task = task};
  parts.state.broadcast_weights();
  WeightAverages averages(parts.prepared, parts.engine);
  averages.begin();
  EXPECT_FALSE(averages.exists());
  const float before = first_weight(parts);
  averages.add();
  parts.add_to_weights(1);
  averages.add();
  averages.update();  // of a moving average alone
  const std::vector<io::NamedTensor> state = averages.state();
  EXPECT_EQ(state.at(0).tensor.data<double>()[0], 2);
  averages.use(true);
  EXPECT_NEAR(first_weight(parts), before + 0.5, 1e-6);
  averages.use(false);
  WeightAverages loaded(parts.prepared, parts.engine);
  loaded.load(state);
  EXPECT_TRUE(loaded.exists());
  EXPECT_NE(error_of([&] { loaded.load({}); }).find("has no tensor average/count"), std::string::npos);
  world().barrier();
}

TEST(DriverTrial, BeginsWithoutAThread) {
  TrainerParts parts;
  DriverTrial trial(parts.prepared);
  EXPECT_FALSE(trial.begins_with_thread());
  EXPECT_EQ(trial.word(), OverlapTrial::kUndecided);
  trial.begin_step(parts.engine);
  EXPECT_FALSE(parts.engine.is_driven_by_thread());
}

TEST(Evaluator, CountsEverySampleOnce) {
  TrainerParts parts;
  parts.state.broadcast_weights();
  StepVotes votes(0);
  Evaluator evaluator(parts.prepared, parts.engine, parts.feed, votes, [&] { parts.engine.progress(); });
  const parallel::WorldLayout& where = parts.prepared.world();
  data::Loader loader(*parts.dataset,
                      data::DistributedSampler({.size = parts.dataset->size(),
                                                .global_batch = 64,
                                                .shards = where.tree.shards(),
                                                .my_shards = where.my_shards(),
                                                .shuffle = false}),
                      {}, {.threads = 0});
  std::int64_t reached = 0;
  const Totals totals = evaluator.run(loader, [&](std::int64_t samples) { reached = samples; });
  EXPECT_EQ(totals.samples, parts.dataset->size());
  EXPECT_EQ(reached, parts.dataset->size());
  EXPECT_TRUE(totals.whole);
}

}  // namespace
}  // namespace lockstep::test

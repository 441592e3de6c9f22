// Trials of a session: what --overfit-batches and --find-lr do to samples, rates and files, at any number of ranks.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/mpi/session_run.h"
#include "tests/mpi/training.h"

namespace lockstep::test {
namespace {

namespace fs = std::filesystem;

data::RunData small_images() { return {.train = make_images(128, 1, 6), .eval = make_images(32, 1, 6)}; }

train::Options trial_options(const fs::path& output, std::int64_t steps) {
  train::Options options = options_for(output, steps);
  options.trainer.shards = 4;
  options.rate.peak = 0.05;
  return options;
}

int train_trial(const comm::Communicator& comm, const train::Options& options) {
  train::Session session(comm, options, "test_trials", "{}", small_images());
  const auto network = make_mlp();
  return train_all(session, *network, models::classify(*network), [] {}).status;
}

TEST(Trials, OverfitTrainsAndEvaluatesOnTheFirstBatchesInOrder) {
  const SharedDirectory shared;
  const auto run = [](const comm::Communicator& comm, const fs::path& output) {
    train::Options options = trial_options(output, 0);
    options.epochs = 3;
    options.eval_every = 1;
    options.trial.overfit_batches = 2;
    train::Session session(comm, options, "test_trials", "{}", small_images());
    const auto network = make_mlp();
    train::Trainer& trainer = session.build(*network, models::classify(*network));
    std::vector<std::vector<std::int64_t>> epochs;
    std::int64_t evaluated = 0;
    while (session.next_epoch()) {
      epochs.emplace_back();
      for (data::Batch& batch : session.batches()) {
        epochs.back().insert(epochs.back().end(), batch.step.samples.begin(), batch.step.samples.end());
        session.report(trainer.step(batch, session.learning_rate()));
      }
      session.finish_epoch();
    }
    evaluated = session.evaluate().samples;
    EXPECT_EQ(evaluated, 64);
    EXPECT_EQ(trainer.updates(), 6);
    EXPECT_EQ(epochs.size(), 3U);
    for (const auto& epoch : epochs) {
      EXPECT_EQ(epoch, epochs.front());
      for (const std::int64_t sample : epoch) EXPECT_LT(sample, 64);
      EXPECT_TRUE(std::ranges::is_sorted(epoch)) << "not shuffled";
    }
    return trainer.weights_hash();
  };
  const std::uint64_t together = run(world(), shared.path() / "together");
  EXPECT_EQ(together, alone(shared.path(), run));
  train::Options options = trial_options(shared.path() / "many", 0);
  options.epochs = 1;
  options.trial.overfit_batches = 5;
  expect_contains(error_of([&] { train_trial(world(), options); }),
                  "--overfit-batches is 5, expected at most 4: the 128 training samples fill 4 global batches of 32");
  options.trial.overfit_batches = 2;
  data::RunData weighted = small_images();
  weighted.epoch.order = std::make_shared<data::WeightedOrder>(std::vector<double>(128, 1));
  expect_contains(error_of([&] { train::Session session(world(), options, "test_trials", "{}", std::move(weighted)); }),
                  "--overfit-batches with --balanced or --sample-weights");
}

TEST(Trials, FindLrGivesTheSameTableAtAnyNumberOfRanksAndLeavesTheRunAlone) {
  const SharedDirectory shared;
  const auto run = [](const comm::Communicator& comm, const fs::path& output) {
    train::Options options = trial_options(output, 0);
    options.epochs = 1;
    options.trial = {.find_lr = true, .lr_range = {1e-4, 1e3}, .lr_steps = 30};
    EXPECT_EQ(train_trial(comm, options), 0);
    comm.barrier();
    std::ifstream in(output / "find-lr" / "lr_find.json");
    return nlohmann::json::parse(in);
  };
  const fs::path output = shared.path() / "together";
  const nlohmann::json together = run(world(), output);
  EXPECT_EQ(together, alone(shared.path(), run));
  const std::size_t rows = together["learning_rate"].size();
  EXPECT_TRUE(together["diverged"].get<bool>()) << "a rate of 1000";
  EXPECT_LE(rows, 30U);
  EXPECT_EQ(together["loss"].size(), rows);
  EXPECT_NEAR(together["learning_rate"][0].get<double>(), 1e-4, 1e-12);
  EXPECT_NEAR(together["learning_rate"][1].get<double>(), 1e-4 * std::pow(1e7, 1.0 / 29), 1e-9);
  EXPECT_FALSE(fs::exists(output / "metrics.jsonl"));
  EXPECT_TRUE(fs::is_empty(output / "find-lr" / "checkpoints"));
  std::ifstream csv(output / "find-lr" / "lr_find.csv");
  std::string line;
  std::size_t lines = 0;
  while (std::getline(csv, line)) ++lines;
  EXPECT_EQ(lines, rows + 1);
}

TEST(Trials, ScaledRatesAreSuggestedAsTheOptionTakesThem) {
  const SharedDirectory shared;
  const auto rates = [&](bool scaled) {
    const fs::path output = shared.path() / (scaled ? "scaled" : "plain");
    train::Options options = trial_options(output, 0);
    options.epochs = 1;
    options.rate.scaled = scaled;
    options.rate.scale_batch = 64;
    options.trial = {.find_lr = true, .lr_range = {1e-3, 1}, .lr_steps = 20};
    train_trial(world(), options);
    world().barrier();
    std::ifstream in(output / "find-lr" / "lr_find.json");
    return nlohmann::json::parse(in);
  };
  const nlohmann::json plain = rates(false), scaled = rates(true);
  EXPECT_EQ(plain["loss"], scaled["loss"]) << "the rates of updates are the same";
  EXPECT_EQ(scaled["lr_per_rate"], 2) << "a global batch of 32, rates for 64";
  ASSERT_TRUE(plain["suggestion"].is_number());
  EXPECT_NEAR(scaled["suggestion"].get<double>(), 2 * plain["suggestion"].get<double>(), 1e-12);
}

}  // namespace
}  // namespace lockstep::test

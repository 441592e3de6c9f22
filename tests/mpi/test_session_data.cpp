// A session of data that is no images: named fields, several evaluation sets, metrics that decide what stays and when
// the run ends.
#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "lockstep/checkpoint/directory.h"
#include "lockstep/data/array_datasets.h"
#include "lockstep/losses/per_sample.h"
#include "lockstep/losses/regression.h"
#include "lockstep/metrics/metrics.h"
#include "lockstep/nn/layers.h"
#include "lockstep/nn/sequential.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "tests/mpi/session_run.h"

namespace lockstep::test {
namespace {

namespace fs = std::filesystem;

// y = (x0 x1, x1 - x2) + `shift`, for points x that `seed` chooses.
std::unique_ptr<data::Dataset> products(std::int64_t samples, std::uint64_t seed, double shift = 0) {
  Tensor x({samples, 3}, DType::F64), y({samples, 2}, DType::F64);
  RandomStream random(seed, 0);
  for (std::int64_t i = 0; i < samples; ++i) {
    double* in = x.data<double>().data() + 3 * i;
    for (int k = 0; k < 3; ++k) in[k] = random.uniform(-1, 1);
    y.data<double>()[static_cast<std::size_t>(2 * i)] = in[0] * in[1] + shift;
    y.data<double>()[static_cast<std::size_t>(2 * i + 1)] = in[1] - in[2] + shift;
  }
  std::vector<data::NamedTensor> tensors;
  tensors.push_back({"x", std::move(x)});
  tensors.push_back({"y", std::move(y)});
  return std::make_unique<data::TensorDataset>(std::move(tensors));
}

data::RunData all_sets() {
  data::RunData data{.train = products(120, 1), .eval = products(31, 2)};
  data.more_eval["shifted"] = products(17, 3, 5);
  return data;
}

train::Options data_options(const fs::path& output) {
  train::Options options = options_for(output, 0);
  options.epochs = 3;
  options.global_batch = 24;
  options.trainer.shards = 4;
  options.eval_every = options.checkpoints.every_epochs = 1;
  options.checkpoints.keep = "last:1,best:rmse";
  options.logging.records = "dllogger";
  options.log_every = 1;
  return options;
}

struct DataOutcome {
  std::uint64_t weights = 0;
  train::Totals totals = {};
  std::int64_t updates = 0;
};

DataOutcome train_products(const comm::Communicator& comm, const train::Options& options,
                           data::RunData data = all_sets()) {
  nn::Sequential network;
  network.append<nn::Linear>(nn::LinearConfig{.in = 3, .out = 16}).append(lockstep::tanh);
  network.append<nn::Linear>(nn::LinearConfig{.in = 16, .out = 2});
  train::Session session(comm, options, "test_session_data", "{}", std::move(data));
  train::Trainer& trainer = session.build(network, [&](const plan::Inputs& in) {
    const Value y = network(in["x"]);
    Metric only_evaluated = metrics::channel_errors(y, in["y"]);
    only_evaluated.rule.in_training = false;
    return plan::Traced{.loss = mean_squared_error(y, in["y"]),
                        .metrics = {metrics::root_mean_squared_error(y, in["y"]), only_evaluated},
                        .prediction = y};
  });
  while (session.next_epoch()) {
    for (data::Batch& batch : session.batches()) session.report(trainer.step(batch, session.learning_rate()));
    session.finish_epoch();
  }
  return {.weights = trainer.weights_hash(), .totals = session.evaluate(), .updates = trainer.updates()};
}

std::vector<nlohmann::json> records(const fs::path& output) {
  std::vector<nlohmann::json> all;
  std::ifstream in(output / "metrics.jsonl");
  for (std::string line; std::getline(in, line);) all.push_back(nlohmann::json::parse(line));
  return all;
}

TEST(SessionData, IsTheSameAtAnyNumberOfRanks) {
  const SharedDirectory shared;
  const DataOutcome together = train_products(world(), data_options(shared.path() / "together"));
  const comm::Communicator alone = world().split(world().rank(), 0);
  const DataOutcome one = train_products(alone, data_options(shared.path() / formatted("alone{}", world().rank())));
  EXPECT_EQ(together.weights, one.weights);
  EXPECT_EQ(together.totals.loss, one.totals.loss);
  ASSERT_EQ(together.totals.metrics.size(), 2U);
  EXPECT_EQ(together.totals.metric("rmse"), one.totals.metric("rmse"));
  EXPECT_EQ(together.totals.metrics[1].results, one.totals.metrics[1].results);
  EXPECT_NEAR(*together.totals.metric("rmse"), std::sqrt(together.totals.loss), 1e-6);
}

// With sample weights in one of two losses, which then counts per sample.
train::Totals train_two_losses(const comm::Communicator& comm, const fs::path& output) {
  train::Options options = data_options(output);
  options.checkpoints.keep = "last:1,best:size";
  options.patience = {.evaluations = 5, .metric = "data"};
  nn::Sequential network;
  network.append<nn::Linear>(nn::LinearConfig{.in = 3, .out = 2});
  train::Session session(comm, options, "test_session_data", "{}", all_sets());
  train::Trainer& trainer = session.build(network, [&](const plan::Inputs& in) {
    const Value y = network(in["x"]);
    const Loss data = mean_squared_error(y, in["y"], {.mask = greater(in["y"], -0.5)});
    return plan::Traced{.losses = {{"data", per_sample(data, in["x"])}, {"size", mean(square(y)), 0.125}}};
  });
  while (session.next_epoch()) {
    for (data::Batch& batch : session.batches()) session.report(trainer.step(batch, session.learning_rate()));
    session.finish_epoch();
  }
  return session.evaluate();
}

TEST(SessionData, SeveralLossesAreMetricsThatAreExactAndDecide) {
  const SharedDirectory shared;
  const fs::path output = shared.path() / "together";
  const train::Totals together = train_two_losses(world(), output);
  const comm::Communicator alone = world().split(world().rank(), 0);
  const train::Totals one = train_two_losses(alone, shared.path() / formatted("alone{}", world().rank()));
  EXPECT_EQ(together.loss, one.loss);
  for (const char* name : {"data", "size"}) {
    ASSERT_TRUE(together.metric(name)) << name;
    EXPECT_EQ(together.metric(name), one.metric(name)) << name;
  }
  EXPECT_NEAR(together.loss, *together.metric("data") + 0.125 * *together.metric("size"), 1e-6 * together.loss);
  if (world().is_root()) {
    for (const nlohmann::json& record : records(output)) EXPECT_TRUE(record["size"].is_number()) << record;
    expect_contains(log_of(output), ", size ");
  }
}

TEST(SessionData, MetricsAreLoggedForEachEvaluationSet) {
  const SharedDirectory shared;
  const fs::path output = shared.path() / "run";
  train_products(world(), data_options(output));
  if (world().is_root()) {
    const std::string log = log_of(output);
    expect_contains(log, "data: ");
    expect_contains(log, ": 120 training and 31 evaluation samples, 17 of shifted, x (3), y (2)");
    expect_contains(log, "epoch 3: training loss ");
    expect_contains(log, "; evaluation loss ");
    expect_contains(log, ", rmse ");
    expect_contains(log, "epoch 3: evaluation of shifted: loss ");
    std::map<std::string, int> splits;
    for (const nlohmann::json& record : records(output)) {
      const auto split = record["split"].get<std::string>();
      ++splits[split];
      EXPECT_TRUE(record["rmse"].is_number()) << record;
      EXPECT_EQ(record.contains("rmse_by_channel"), split.starts_with("eval")) << record;
      if (split.starts_with("eval")) {
        EXPECT_EQ(record["rmse_by_channel"].size(), 2U);
      }
      if (split == "eval:shifted") {
        EXPECT_GT(record["rmse"].get<double>(), 3);
      }
    }
    EXPECT_EQ(splits, (std::map<std::string, int>{{"train", 15}, {"epoch", 3}, {"eval", 3}, {"eval:shifted", 3}}));
    std::ifstream in(output / "dllogger.json");
    const std::string text(std::istreambuf_iterator<char>(in), {});
    expect_contains(text, "\"val.shifted.rmse\":");
    const auto saved = checkpoint::list(output / "checkpoints");
    ASSERT_FALSE(saved.empty());
    const auto score = checkpoint::score_of(checkpoint::read_note(saved.back().path));
    ASSERT_TRUE(score);
    EXPECT_TRUE(score->metrics.contains("rmse"));
  }
  world().barrier();
}

TEST(SessionData, PatienceLooksAtTheMetricThatItNames) {
  const SharedDirectory shared;
  train::Options options = data_options(shared.path() / "run");
  options.rate.peak = 1e-38;  // too small to change a weight
  options.epochs = 10;
  options.patience = {.evaluations = 2, .metric = "rmse"};
  EXPECT_EQ(train_products(world(), options).updates, 3 * 5);
  if (world().is_root()) expect_contains(log_of(options.output), "2 evaluations without progress of rmse, best ");
  options.output = (shared.path() / "other").string();
  options.patience.metric = "rmse_by_channel";
  EXPECT_NE(error_of([&] { train_products(world(), options); })
                .find("--patience-metric names the metric 'rmse_by_channel', and the model has none of this name that "
                      "can be compared; expected one of loss, rmse"),
            std::string::npos);
}

TEST(SessionData, WithoutAnEvaluationSetARunTrains) {
  const SharedDirectory shared;
  train::Options options = data_options(shared.path() / "run");
  options.checkpoints.keep = "1";
  data::RunData data;
  data.train = products(48, 1);
  EXPECT_NE(error_of([&] { train_products(world(), options, std::move(data)); }).find("there is no evaluation data"),
            std::string::npos)
      << "evaluate() of the program";
  if (!world().is_root()) return;
  std::vector<std::int64_t> steps;
  for (const nlohmann::json& line : records(options.output))
    if (line.at("split") == "train") steps.push_back(line.at("step"));
  EXPECT_EQ(steps, (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6})) << "3 epochs of 48 samples, 24 in a step";
}

TEST(SessionData, WithoutAnEvaluationSetNothingDecidesByEvaluations) {
  const SharedDirectory shared;
  const auto refused = [&](const train::Options& options) {
    data::RunData data;
    data.train = products(48, 1);
    return error_of([&] { train_products(world(), options, std::move(data)); });
  };
  train::Options usual = data_options(shared.path() / "run");
  expect_contains(refused(usual), "--keep last:1,best:rmse without evaluation data, expected evaluation samples");
  usual.checkpoints.keep = "1";
  train::Options patience = usual, plateau = usual;
  patience.patience.evaluations = 2;
  expect_contains(refused(patience), "--patience is 2 without evaluation data, expected evaluation samples");
  plateau.rate.kind = optim::ScheduleOptions::Kind::Plateau;
  expect_contains(refused(plateau), "--schedule plateau without evaluation data, expected evaluation samples");
}

TEST(SessionData, ASampleThatOneRankCannotReadEndsAllRanks) {
  const SharedDirectory shared;
  data::RunData data = all_sets();
  data.eval = std::make_unique<data::FunctionDataset>(data::FunctionDatasetOptions{
      .size = 31, .fields = data.train->fields(), .read = [](std::int64_t, std::span<std::byte* const> out) {
        check(!is_last(), "test", "this rank cannot read");
        std::fill_n(out[0], 3 * sizeof(double), std::byte{0});
        std::fill_n(out[1], 2 * sizeof(double), std::byte{0});
      }});
  expect_contains(error_of([&] { train_products(world(), data_options(shared.path() / "run"), std::move(data)); }),
                  "[test] this rank cannot read");
}

// Rank 0 alone reads it.
TEST(SessionData, AnEndOfTheJobThatIsNoTimeEndsAllRanks) {
  const SharedDirectory shared;
  ::setenv("SLURM_JOB_END_TIME", "soon", 1);
  const std::string error = error_of([&] { train_products(world(), data_options(shared.path() / "run")); });
  ::unsetenv("SLURM_JOB_END_TIME");
  expect_contains(error, "SLURM_JOB_END_TIME is 'soon', expected seconds since 1970");
}

TEST(SessionData, SetsThatDifferAreRefused) {
  const SharedDirectory shared;
  data::RunData data = all_sets();
  data.more_eval["images"] = std::make_unique<data::FunctionDataset>(data::FunctionDatasetOptions{
      .size = 4, .fields = {{"image", {3}, DType::F32}}, .read = [](std::int64_t, std::span<std::byte* const>) {}});
  EXPECT_NE(error_of([&] {
              train_products(world(), data_options(shared.path() / "run"), std::move(data));
            }).find("expected those of the training samples: x"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep::test

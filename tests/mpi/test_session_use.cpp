// Sessions that train nothing, of the caller's own data: evaluations and predictions of a run's weights.
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "lockstep/checkpoint/directory.h"
#include "lockstep/data/array_datasets.h"
#include "lockstep/data/dataset_view.h"
#include "lockstep/infer/predictor.h"
#include "lockstep/losses/regression.h"
#include "lockstep/metrics/metrics.h"
#include "lockstep/nn/layers.h"
#include "lockstep/nn/sequential.h"
#include "lockstep/ops/pointwise.h"
#include "tests/mpi/session_run.h"

namespace lockstep::test {
namespace {

namespace fs = std::filesystem;

// x (3) and y = (x0 x1, x1 - x2); without `targets` x alone.
std::unique_ptr<data::Dataset> product_samples(std::int64_t samples, std::uint64_t seed, bool targets = true) {
  Tensor x({samples, 3}, DType::F64), y({samples, 2}, DType::F64);
  RandomStream random(seed, 0);
  for (double& value : x.data<double>()) value = random.uniform(-1, 1);
  for (std::int64_t i = 0; i < samples; ++i) {
    const double* in = x.data<double>().data() + 3 * i;
    y.data<double>()[static_cast<std::size_t>(2 * i)] = in[0] * in[1];
    y.data<double>()[static_cast<std::size_t>(2 * i + 1)] = in[1] - in[2];
  }
  std::vector<data::NamedTensor> tensors;
  tensors.push_back({"x", std::move(x)});
  if (targets) tensors.push_back({"y", std::move(y)});
  return std::make_unique<data::TensorDataset>(std::move(tensors));
}

data::RunData sets() {
  data::RunData data{.train = product_samples(60, 1), .eval = product_samples(31, 2)};
  data.more_eval["other"] = product_samples(17, 3);
  return data;
}

// Without targets; the file gets twice the prediction, as "double".
data::RunData inputs() {
  data::RunData data{.train = product_samples(23, 7, false)};
  data.prediction.absent = {{"y", Shape{2}, DType::F64}};
  data.prediction.decode = [](Tensor prediction) {
    for (double& value : prediction.data<double>()) value *= 2;
    std::vector<data::NamedTensor> arrays;
    arrays.push_back({"double", std::move(prediction)});
    return arrays;
  };
  return data;
}

// Only rank 0, which writes, asks for the place of a sample.
class Placeless : public data::DatasetView {
 public:
  using DatasetView::DatasetView;
  std::string locate(std::int64_t /*index*/) const override { throw std::runtime_error("there is no place"); }
};

std::unique_ptr<nn::Sequential> network() {
  auto made = std::make_unique<nn::Sequential>();
  made->append<nn::Linear>(nn::LinearConfig{.in = 3, .out = 8}).append(lockstep::tanh);
  made->append<nn::Linear>(nn::LinearConfig{.in = 8, .out = 2});
  return made;
}

int run_session(const comm::Communicator& comm, const train::Options& options, data::RunData data,
                bool predicts = true) {
  const auto model = network();
  train::Session session(comm, options, "test_session_use", "{}", std::move(data));
  train::Trainer& trainer = session.build(*model, [&](const plan::Inputs& in) {
    const Value y = (*model)(in["x"]);
    return plan::Traced{.loss = mean_squared_error(y, in["y"]),
                        .metrics = {metrics::root_mean_squared_error(y, in["y"])},
                        .prediction = predicts ? y : Value()};
  });
  while (session.next_epoch()) {
    for (data::Batch& batch : session.batches()) session.report(trainer.step(batch, session.learning_rate()));
    session.finish_epoch();
  }
  EXPECT_FALSE(session.next_epoch());
  return session.status();
}

train::Options use_options(const fs::path& output) {
  train::Options options = options_for(output, 0);
  options.precision = train::Precision::F64;
  options.epochs = 1;
  options.global_batch = 24;
  options.eval_every = options.checkpoints.every_epochs = 1;
  return options;
}

std::vector<nlohmann::json> lines_of(const fs::path& file, const std::string& begin) {
  std::vector<nlohmann::json> lines;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const nlohmann::json one = nlohmann::json::parse(line);
    if (one["split"].get<std::string>().starts_with(begin)) lines.push_back(one);
  }
  return lines;
}

std::string bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(SessionUse, EvaluatesAllSetsAndWritesNoCheckpoint) {
  const SharedDirectory shared;
  train::Options options = use_options(shared.path() / "run");
  run_session(world(), options, sets());
  const auto saved = checkpoint::list(shared.path() / "run" / "checkpoints");
  options.evaluate_only = true;
  options.weights = (shared.path() / "run").string();  // of the folder the newest checkpoint
  EXPECT_EQ(run_session(world(), options, sets()), 0);
  EXPECT_EQ(checkpoint::list(shared.path() / "run" / "checkpoints").size(), saved.size());
  if (world().is_root()) {
    const auto trained = lines_of(shared.path() / "run" / "metrics.jsonl", "eval");
    const auto evaluated = lines_of(shared.path() / "run" / "evaluations.jsonl", "eval");
    ASSERT_EQ(evaluated.size(), 2U);
    ASSERT_EQ(trained.size(), 2U);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(evaluated[i]["split"], trained[i]["split"]);
      EXPECT_EQ(evaluated[i]["loss"], trained[i]["loss"]);
      EXPECT_EQ(evaluated[i]["rmse"], trained[i]["rmse"]);
      EXPECT_EQ(evaluated[i]["step"], 3);
      EXPECT_EQ(evaluated[i]["weights"], saved.back().path.string());
      EXPECT_EQ(evaluated[i]["data"]["dataset"], product_samples(31, 2)->describe());
    }
    EXPECT_EQ(evaluated[1]["samples"], 17);
    expect_contains(log_of(options.output), "evaluation of " + saved.back().path.string() + ": loss ");
    expect_contains(log_of(options.output), " on other: loss ");
  }
  world().barrier();
}

TEST(SessionUse, PredictsAsThePredictorDoesAtAnyNumberOfRanks) {
  const SharedDirectory shared;
  train::Options options = use_options(shared.path() / "run");
  run_session(world(), options, sets());
  options.weights = (shared.path() / "run").string();
  options.global_batch = 0;
  options.batch_size = 4;  // 23 samples: six groups, the last one of three samples
  options.predict = (shared.path() / "together.npy").string();
  EXPECT_EQ(run_session(world(), options, inputs()), 0);
  const comm::Communicator alone = world().split(world().rank(), 0);
  options.predict = (shared.path() / formatted("alone{}.npy", world().rank())).string();
  options.output = (shared.path() / formatted("alone{}", world().rank())).string();
  EXPECT_EQ(run_session(alone, options, inputs()), 0);
  EXPECT_EQ(bytes_of(options.predict), bytes_of(shared.path() / "together.npy"));

  const auto model = network();
  infer::Predictor predictor(*model, [&](const plan::Inputs& in) { return (*model)(in["x"]); },
                             {.dtype = DType::F64, .input = "x"});
  predictor.load(checkpoint::list(shared.path() / "run" / "checkpoints").back().path);
  const auto set = product_samples(23, 7, false);
  Tensor x({23, 3}, DType::F64);
  for (std::int64_t i = 0; i < 23; ++i) {
    const std::array<std::byte*, 1> out{x.raw() + 24 * i};
    set->read(i, out);
  }
  const Tensor expected = predictor(x);
  const std::string found = bytes_of(options.predict);
  ASSERT_GT(found.size(), expected.bytes());
  Tensor values({23, 2}, DType::F64);
  std::memcpy(values.raw(), found.data() + found.size() - values.bytes(), values.bytes());
  for (std::size_t i = 0; i < 46; ++i)
    EXPECT_NEAR(values.data<double>()[i], 2 * expected.data<double>()[i], 1e-14) << i;
  world().barrier();
}

TEST(SessionUse, MistakesAreNamedOnAllRanks) {
  const SharedDirectory shared;
  train::Options options = use_options(shared.path() / "run");
  options.evaluate_only = true;
  EXPECT_NE(error_of([&] { run_session(world(), options, sets()); }).find("--evaluate-only needs weights"),
            std::string::npos);
  options.weights = (shared.path() / "none.h5").string();
  EXPECT_NE(error_of([&] { run_session(world(), options, sets()); }).find("none.h5"), std::string::npos);
  options.evaluate_only = false;
  options.weights.clear();
  run_session(world(), options, sets());
  options.weights = options.output;
  options.predict = (shared.path() / "p.h5").string();
  EXPECT_NE(error_of([&] { run_session(world(), options, inputs(), false); }).find("no plan::Traced::prediction"),
            std::string::npos);
  data::RunData bad = inputs();
  bad.prediction.decode = [](Tensor) -> std::vector<data::NamedTensor> { throw Error("cannot be decoded"); };
  EXPECT_NE(error_of([&] { run_session(world(), options, std::move(bad)); }).find("cannot be decoded"),
            std::string::npos);
  data::RunData placeless = inputs();
  placeless.train = std::make_unique<Placeless>(std::move(placeless.train));
  placeless.prediction.decode = [](const Tensor& prediction) {
    std::vector<data::NamedTensor> arrays;
    arrays.push_back({"class", Tensor(Shape{prediction.shape()[0]}, DType::I32)});
    return arrays;
  };
  EXPECT_NE(error_of([&] { run_session(world(), options, std::move(placeless)); }).find("there is no place"),
            std::string::npos)
      << "on rank 0 alone, while it writes, and no Error";
  EXPECT_FALSE(fs::exists(options.predict));
  world().barrier();
}

}  // namespace
}  // namespace lockstep::test

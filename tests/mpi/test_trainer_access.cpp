// The values that user code reads from and writes into a Trainer: observed values, gradients, weights from files,
// frozen parts, groups.
#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/checkpoint/state.h"
#include "lockstep/checkpoint/weights.h"
#include "lockstep/data/array_datasets.h"
#include "lockstep/data/loader.h"
#include "lockstep/losses/regression.h"
#include "lockstep/nn/layers.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/pool.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/parallel/tables/table_engine.h"
#include "lockstep/plan/compiled_model.h"
#include "lockstep/train/state/table_state.h"
#include "lockstep/train/step/trainer.h"
#include "tests/mpi/harness.h"

namespace lockstep::test {
namespace {

using train::Trainer;
using train::TrainerOptions;

constexpr std::int64_t kSamples = 12;

class Regressor : public nn::Module {
 public:
  explicit Regressor(std::int64_t outputs = 2) : outputs_(outputs) {}
  Value operator()(Value x) const {
    const Value pooled = flatten(global_average_pool2d(norm_(conv_(x))));
    return head_(observe("activation", lockstep::tanh(hidden_(pooled))));
  }

 private:
  std::int64_t outputs_;
  nn::Child<nn::Conv2d> conv_{this, "conv", {.in = 1, .out = 2, .kernel = 1}};
  nn::Child<nn::BatchNorm2d> norm_{this, "norm", {.channels = 2}};
  nn::Child<nn::Linear> hidden_{this, "hidden", {.in = 2, .out = 3}};
  nn::Child<nn::Linear> head_{this, "head", {.in = 3, .out = outputs_}};
};

plan::ModelFunction regression(const Regressor& network) {
  return [&network](const plan::Inputs& in) {
    const Value y = network(in["x"]);
    return plan::Traced{.loss = mean_squared_error(y, in["y"]), .prediction = y};
  };
}

std::vector<data::Field> fields(std::int64_t outputs = 2) {
  return {{"x", {1, 2, 2}, DType::F64}, {"y", {outputs}, DType::F64}};
}

data::TensorDataset samples(std::int64_t outputs = 2) {
  Tensor x({kSamples, 1, 2, 2}, DType::F64), y({kSamples, outputs}, DType::F64);
  RandomStream random(3, 0);
  for (double& v : x.data<double>()) v = random.uniform();
  for (double& v : y.data<double>()) v = random.uniform();
  std::vector<data::NamedTensor> tensors;
  tensors.push_back({"x", std::move(x)});
  tensors.push_back({"y", std::move(y)});
  return data::TensorDataset(std::move(tensors));
}

TrainerOptions options(std::uint64_t seed = 1) {
  return {.global_batch = kSamples, .precision = DType::F64, .seed = seed};
}

std::vector<double> parameter(Trainer& trainer, const std::string& name) {
  const Tensor tensor = trainer.model().parameters().read(name);
  const auto values = tensor.data<double>();
  return {values.begin(), values.end()};
}

void train_one_step(Trainer& trainer, double rate, std::int64_t outputs = 2) {
  const data::TensorDataset dataset = samples(outputs);
  data::Loader loader(dataset, trainer.sampler(dataset), {}, {.threads = 0});
  trainer.step(loader.next(), rate);
}

TEST(TrainerAccess, SamplerGivesThisRanksPartOfEachGlobalBatch) {
  const Regressor network;
  const Trainer trainer(world(), network, regression(network), fields(), options());
  const data::TensorDataset dataset = samples();
  data::Loader loader(dataset, trainer.sampler(dataset, {.shuffle = false}), {}, {.threads = 0});
  const data::Batch batch = loader.next();
  EXPECT_EQ(batch.step.global_size, kSamples);
  EXPECT_EQ(world().allreduce(batch.samples(), comm::ReduceOp::Sum), kSamples);
}

TEST(TrainerAccess, ObservedValuesAreThoseOfThisRanksSamples) {
  const Regressor network;
  Trainer trainer(world(), network, regression(network), fields(), options());
  const data::TensorDataset dataset = samples();
  data::Loader loader(dataset, trainer.sampler(dataset), {}, {.threads = 0});
  const data::Batch batch = loader.next();
  const auto unseen = [&] { return error_of([&] { (void)trainer.observed("activation"); }); };
  EXPECT_NE(unseen().find("needs a training step with samples on this rank"), std::string::npos);
  trainer.step(batch, 0);
  const Tensor activation = trainer.observed("activation");
  EXPECT_EQ(activation.shape(), (Shape{batch.samples(), 3}));
  EXPECT_TRUE(std::ranges::all_of(activation.data<double>(), [](double v) { return v > -1 && v < 1 && v != 0; }));
  EXPECT_NE(error_of([&] { (void)trainer.observed("hidden"); }).find("'hidden' is not observed"), std::string::npos);
  trainer.evaluate(loader);
  EXPECT_NE(unseen().find("after the last evaluation"), std::string::npos);
}

TEST(TrainerAccess, GradientIsThatOfTheMeanLossAndMovesWeightsByTheRate) {
  const Regressor network;
  Trainer trainer(world(), network, regression(network), fields(), options());
  const auto before = parameter(trainer, "head.weight");
  train_one_step(trainer, 0.5);
  const auto after = parameter(trainer, "head.weight");
  const Tensor gradient = trainer.gradient("head.weight");
  for (std::size_t i = 0; i < before.size(); ++i)
    EXPECT_NEAR(after[i], before[i] - 0.5 * gradient.data<double>()[i], 1e-14);
}

TEST(TrainerAccess, WeightsComeFromAFileToAllRanks) {
  const SharedDirectory directory;
  const auto file = directory.path() / "weights.h5";
  const Regressor network;
  Trainer from(world(), network, regression(network), fields(), options(1)),
      to(world(), network, regression(network), fields(), options(2));
  train_one_step(from, 0.1);
  if (world().is_root()) checkpoint::save_weights(file, checkpoint::weights(from.model().parameters()));
  EXPECT_NE(from.weights_hash(), to.weights_hash());
  EXPECT_TRUE(to.load_weights(file).complete());
  EXPECT_EQ(from.weights_hash(), to.weights_hash());
}

TEST(TrainerAccess, PartOfAFileReportsTheSameOnAllRanksAndStrictFailsOnAll) {
  const SharedDirectory directory;
  const auto file = directory.path() / "weights.h5";
  const Regressor wide(5), network;
  Trainer from(world(), wide, regression(wide), fields(5), options(1)),
      to(world(), network, regression(network), fields(), options(2));
  if (world().is_root()) checkpoint::save_weights(file, checkpoint::weights(from.model().parameters()));
  const std::uint64_t before = to.weights_hash();
  EXPECT_NE(error_of([&] { to.load_weights(file); }).find("head.weight (5, 3) instead of (2, 3)"), std::string::npos);
  EXPECT_EQ(to.weights_hash(), before);
  const checkpoint::LoadReport report = to.load_weights(file, {.strict = false});
  EXPECT_EQ(report.mismatched.size(), 2u);
  EXPECT_EQ(report.loaded.size() + 2, to.model().parameters().parameters().size());
  EXPECT_EQ(parameter(to, "hidden.weight"), parameter(from, "hidden.weight"));
  EXPECT_NE(error_of([&] { to.load_weights(directory.path() / "none.h5"); }).find("none.h5"), std::string::npos);
}

TEST(TrainerAccess, FrozenPartsStayAndGroupsHaveTheirOwnRate) {
  Regressor network;
  network.set_trainable(false);
  network.freeze_statistics(true);
  network.part("hidden").set_trainable(true);
  network.part("head").set_trainable(true);
  TrainerOptions o = options();
  o.update.groups = {{.pattern = "hidden.*", .rate_scale = 0.1}};
  Trainer trainer(world(), network, regression(network), fields(), o);
  const auto conv = parameter(trainer, "conv.weight"), norm = parameter(trainer, "norm.running_mean"),
             hidden = parameter(trainer, "hidden.bias");
  train_one_step(trainer, 0.5);
  EXPECT_EQ(parameter(trainer, "conv.weight"), conv);
  EXPECT_EQ(parameter(trainer, "norm.running_mean"), norm);
  const Tensor gradient = trainer.gradient("hidden.bias");
  const auto moved = parameter(trainer, "hidden.bias");
  for (std::size_t i = 0; i < hidden.size(); ++i)
    EXPECT_NEAR(moved[i], hidden[i] - 0.05 * gradient.data<double>()[i], 1e-14);
  EXPECT_NE(error_of([&] { (void)trainer.gradient("conv.weight"); }).find("'conv.weight' has no gradient"),
            std::string::npos);
  EXPECT_NE(error_of([&] { network.part("tail"); }).find("there are: conv, norm, hidden, head"), std::string::npos);
}

TEST(TrainerAccess, StateGoesRoundAndNamesWhatIsNotThere) {
  const Regressor network;
  TrainerOptions o = options();
  o.rule = optim::sgd({.momentum = 0.9});
  Trainer from(world(), network, regression(network), fields(), o);
  train_one_step(from, 0.1);
  Trainer to(world(), network, regression(network), fields(), o);
  EXPECT_NE(from.weights_hash(), to.weights_hash());
  to.load(from.state(), from.updates());
  train_one_step(from, 0.1);
  train_one_step(to, 0.1);
  EXPECT_EQ(from.weights_hash(), to.weights_hash());
  std::vector<io::NamedTensor> cut = from.state();
  std::erase_if(cut, [](const auto& t) { return t.name == "optimizer/momentum/head.bias"; });
  EXPECT_NE(error_of([&] { to.load(cut, 1); }).find("1 missing: momentum/head.bias"), std::string::npos);
  to.load(cut, 1, true);  // weights alone
  EXPECT_EQ(from.weights_hash(), to.weights_hash());
}

// One tensor has the whole table; no more than a piece of it is asked for at a time.
TEST(LoadWeights, ReadsATableInPieces) {
  constexpr std::int64_t kWide = 256, kRows = train::TableState::kPieceElements / kWide + 100;
  Table table{.rows = kRows, .width = kWide, .initialize = [](const Shape&, std::span<double>, RandomStream&) {}};
  parallel::NodeMemory memory(world(), parallel::Domains::single_ranks(world().rank(), world().size()), false);
  parallel::TableEngine::Setup setup{.tables = {{"big.weight", &table}}};
  setup.options.rules.all.rule = optim::RowRule::Sgd;
  setup.options.shard = true;
  const auto engine =
      parallel::TableEngine::make(world(), parallel::WorldLayout(world().rank(), world().size(), 0), memory, setup);
  std::int64_t largest = 0, rows = 0;
  io::TensorSource file;
  if (world().is_root()) {
    file.infos = {{"big.weight", Shape{kRows, kWide}, DType::F32}, {"out.bias", Shape{1}, DType::F32}};
    file.tensor = [](std::size_t i) -> const io::NamedTensor& { fail("test", "tensor {} as a whole", i); };
    file.rows = [&](std::size_t, Range part) {
      largest = std::max(largest, part.size() * kWide);
      rows += part.size();
      Tensor values({part.size(), kWide}, DType::F32);
      for (std::int64_t r = 0; r < part.size(); ++r)
        values.data<float>()[static_cast<std::size_t>(r * kWide)] = static_cast<float>(part.begin + r);
      return values;
    };
  }
  const train::TableState state(engine.get());
  checkpoint::LoadReport report;
  std::vector<train::TableState::Stored> found;
  if (world().is_root()) found = state.match_weights(file.infos, {}, "file.h5", report);
  EXPECT_EQ(report.loaded.size(), world().is_root() ? 1u : 0u);
  EXPECT_EQ(state.without_weights(file, "").count(), world().is_root() ? 1u : 0u);
  state.load_weights(world(), file, found);
  EXPECT_LE(largest, train::TableState::kPieceElements);
  EXPECT_EQ(rows, world().is_root() ? kRows : 0);
  const Tensor last = engine->read(engine->tensors()[0], {kRows - 1, kRows}, true);
  if (world().is_root()) {
    EXPECT_EQ(last.data<float>()[0], static_cast<float>(kRows - 1));
  }
  file.rows = [](std::size_t, Range) -> Tensor { fail("test", "the file is damaged"); };
  expect_shared(error_of([&] { state.load_weights(world(), file, found); }));
}

}  // namespace
}  // namespace lockstep::test

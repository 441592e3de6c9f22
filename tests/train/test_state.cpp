#include "lockstep/checkpoint/state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "lockstep/checkpoint/training_state.h"
#include "lockstep/checkpoint/weights.h"
#include "lockstep/core/error.h"
#include "lockstep/nn/layers.h"
#include "tests/messages.h"
#include "tests/train/streams.h"

namespace lockstep::train {
namespace {

using io::NamedTensor;

class TiedNetwork : public nn::Module {
 public:
  explicit TiedNetwork(std::int64_t classes = 3, bool tied = false) : classes_(classes) {
    if (tied) tie("again", body_.weight());
  }

 private:
  std::int64_t classes_;
  nn::Child<nn::Linear> body_{this, "body", {.in = 4, .out = 4}};
  nn::Child<nn::Linear> head_{this, "head", {.in = 4, .out = classes_}};
  nn::Child<nn::BatchNorm2d> norm_{this, "norm", {.channels = 2}};
};

struct Model {
  TiedNetwork network;
  plan::ParameterStore store;

  explicit Model(std::uint64_t seed, std::int64_t classes = 3, bool tied = false,
                 const std::vector<const char*>& with_gradient = {}, plan::ParameterStoreOptions options = {})
      : network(classes, tied), store(network.named_parameters(), (options.seed = seed, options)) {
    std::vector<const Parameter*> order;
    for (const char* name : with_gradient) order.push_back(store.find(name));
    store.allocate({}, order);
  }
};

std::vector<float> values(const plan::ParameterStore& store, const std::string& name) {
  const Tensor tensor = store.read(name);
  const auto data = tensor.data<float>();
  return {data.begin(), data.end()};
}

TEST(LoadWeights, StrictTakesAWholeStateDict) {
  const Model from(1);
  Model to(2);
  ASSERT_NE(values(from.store, "head.weight"), values(to.store, "head.weight"));
  const checkpoint::LoadReport report = checkpoint::load_weights(to.store, checkpoint::weights(from.store));
  EXPECT_TRUE(report.complete());
  EXPECT_EQ(report.loaded.size(), from.store.parameters().size());
  for (const NamedParameter& p : from.store.parameters()) {
    if (p.parameter->is_integer) continue;
    EXPECT_EQ(values(from.store, p.name), values(to.store, p.name)) << p.name;
  }
}

TEST(LoadWeights, StrictNamesEverythingThatDoesNotFitAndChangesNothing) {
  const Model from(1, 5);
  Model to(2, 3);
  std::vector<NamedTensor> tensors = checkpoint::weights(from.store);
  std::erase_if(tensors, [](const NamedTensor& t) { return t.name == "body.bias" || t.name == "norm.running_var"; });
  tensors.push_back({"left.over", Tensor({2}, DType::F32)});
  const auto before = values(to.store, "body.weight");
  const std::string error = error_of([&] { checkpoint::load_weights(to.store, tensors); });
  EXPECT_TRUE(has(error, "2 missing: body.bias, norm.running_var")) << error;
  EXPECT_TRUE(has(error, "1 unexpected: left.over")) << error;
  EXPECT_TRUE(
      has(error, "2 of another shape or type: head.weight (5, 4) instead of (3, 4), head.bias (5) instead of (3)"))
      << error;
  EXPECT_EQ(values(to.store, "body.weight"), before);
}

TEST(LoadWeights, PartialTakesWhatFitsAndReportsTheRest) {
  const Model from(1, 5);
  Model to(2, 3);
  std::vector<NamedTensor> tensors = checkpoint::weights(from.store);
  std::erase_if(tensors, [](const NamedTensor& t) { return t.name == "body.bias"; });
  tensors.push_back({"left.over", Tensor({2}, DType::F32)});
  const auto head = values(to.store, "head.weight"), bias = values(to.store, "body.bias");
  const checkpoint::LoadReport report = checkpoint::load_weights(to.store, tensors, {.strict = false});
  EXPECT_EQ(report.missing, std::vector<std::string>{"body.bias"});
  EXPECT_EQ(report.unexpected, std::vector<std::string>{"left.over"});
  EXPECT_EQ(report.mismatched.size(), 2u);
  EXPECT_EQ(report.loaded.size() + 3, to.store.parameters().size());
  EXPECT_EQ(values(to.store, "body.weight"), values(from.store, "body.weight"));
  EXPECT_EQ(values(to.store, "head.weight"), head);
  EXPECT_EQ(values(to.store, "body.bias"), bias);
}

TEST(LoadWeights, PrefixIsTakenOffAndOthersDoNotCount) {
  const Model from(1);
  Model to(2);
  std::vector<NamedTensor> tensors = checkpoint::weights(from.store, "module.");
  tensors.push_back({"optimizer.step", Tensor({2}, DType::F32)});
  EXPECT_NE(error_of([&] { checkpoint::load_weights(to.store, tensors); }), "no error");
  EXPECT_TRUE(checkpoint::load_weights(to.store, tensors, {.prefix = "module."}).complete());
  EXPECT_EQ(values(to.store, "head.bias"), values(from.store, "head.bias"));
}

TEST(LoadWeights, ATypeThatCannotBeConvertedIsAMismatchAndFloatsConvert) {
  Model to(2);
  std::vector<NamedTensor> tensors = checkpoint::weights(to.store);
  for (NamedTensor& t : tensors) {
    if (t.name == "body.bias") t.tensor = Tensor::from<double>({4}, std::vector<double>{1, 2, 3, 4});
    if (t.name == "norm.num_batches_tracked") t.tensor = Tensor({}, DType::F32);
  }
  const checkpoint::LoadReport report = checkpoint::load_weights(to.store, tensors, {.strict = false});
  EXPECT_EQ(report.mismatched, std::vector<std::string>{"norm.num_batches_tracked of f32 instead of i64"});
  EXPECT_EQ(values(to.store, "body.bias"), (std::vector<float>{1, 2, 3, 4}));
}

TEST(LoadWeights, OneNameOfTiedWeightsIsEnough) {
  const Model from(1, 3, true);
  Model to(2, 3, true);
  std::vector<NamedTensor> tensors = checkpoint::weights(from.store);
  std::erase_if(tensors, [](const NamedTensor& t) { return t.name == "again"; });
  EXPECT_TRUE(checkpoint::load_weights(to.store, tensors).complete());
  EXPECT_EQ(values(to.store, "again"), values(from.store, "body.weight"));
}

TEST(LoadWeights, LongListsEndAfterTenNames) {
  checkpoint::LoadReport report;
  for (int i = 0; i < 14; ++i) report.missing.push_back(formatted("p{}", i));
  const std::string text = report.str();
  EXPECT_TRUE(has(text, "14 missing: p0, p1")) << text;
  EXPECT_TRUE(has(text, "p9 and 4 more")) << text;
  EXPECT_FALSE(has(text, "p10")) << text;
}

class WeightsFile : public FolderTest {};

TEST_F(WeightsFile, IsNamedByErrors) {
  std::filesystem::create_directories(folder_);
  const std::filesystem::path file = folder_ / "weights.h5";
  const Model from(1, 5);
  checkpoint::save_weights(file, checkpoint::weights(from.store));
  Model to(2, 3);
  const std::string error = error_of([&] { checkpoint::load_weights(to.store, file); });
  EXPECT_TRUE(has(error, file.string())) << error;
  EXPECT_TRUE(has(error, "head.weight (5, 4)")) << error;
  EXPECT_EQ(checkpoint::load_weights(to.store, file, {.strict = false}).mismatched.size(), 2u);
}

TEST(LoadWeights, NeedsMemory) {
  const TiedNetwork network;
  plan::ParameterStore store(network.named_parameters(), {});
  EXPECT_NE(error_of([&] { checkpoint::load_weights(store, std::vector<NamedTensor>{}); }), "no error");
}

TEST(OptimizerState, GoesRoundAndIsStrict) {
  const auto rule = optim::adam({});
  const plan::ParameterStoreOptions two_states{.optimizer_states = 2};
  Model from(1, 3, false, {"head.weight", "head.bias"}, two_states),
      to(2, 3, false, {"head.weight", "head.bias"}, two_states);
  const std::vector<float> momentum{1, 2, 3}, variance{4, 5, 6};
  from.store.write_state("head.bias", 0, Tensor::from<float>({3}, momentum));
  from.store.write_state("head.bias", 1, Tensor::from<float>({3}, variance));
  const checkpoint::TrainingState state(from.store, *rule);
  checkpoint::TrainingState other(to.store, *rule);
  std::vector<NamedTensor> tensors = state.read();
  ASSERT_EQ(tensors.size(), state.entries().size());
  EXPECT_EQ(std::ranges::count_if(state.entries(), [](const auto& entry) { return entry.is_optimizer(); }), 4);
  other.load(io::source_of(tensors));
  EXPECT_EQ(values(to.store, "body.weight"), values(from.store, "body.weight"));
  EXPECT_TRUE(std::ranges::equal(to.store.read_state("head.bias", 0).data<float>(), momentum));
  EXPECT_TRUE(std::ranges::equal(to.store.read_state("head.bias", 1).data<float>(), variance));

  // One state does not stand for the other.
  const std::string last = tensors.back().name;
  tensors.pop_back();
  const std::string error = error_of([&] { other.load(io::source_of(tensors)); });
  EXPECT_TRUE(has(error, "1 missing: " + last.substr(10))) << error;
  EXPECT_EQ(error_of([&] { other.load(io::source_of(tensors), true); }), "no error")
      << "of the weights none is missing";
}

// A tensor that another rank writes comes without memory: it is not written here, and copies of its values are out of
// date.
TEST(TrainingState, LeavesATensorWithoutMemoryAlone) {
  const auto rule = optim::sgd({});
  Model from(1), to(2);
  const std::vector<NamedTensor> tensors = checkpoint::TrainingState(from.store, *rule).read();
  io::TensorSource source = io::source_of(tensors);
  const NamedTensor nothing;
  source.tensor = [&](std::size_t i) -> const NamedTensor& {
    return tensors[i].name == "model/body.weight" ? nothing : tensors[i];
  };
  const auto before = values(to.store, "body.weight");
  const std::uint64_t version = to.store.version();
  checkpoint::TrainingState(to.store, *rule).load(source);
  EXPECT_EQ(values(to.store, "body.weight"), before);
  EXPECT_EQ(values(to.store, "head.weight"), values(from.store, "head.weight"));
  EXPECT_GT(to.store.version(), version);
}

// A state that is refused changes nothing, whichever part was wrong.
TEST(TrainingState, ThatDoesNotFitIsRefusedBeforeAnythingIsWritten) {
  const auto rule = optim::sgd({.momentum = 0.9});
  const plan::ParameterStoreOptions one_state{.optimizer_states = 1};
  Model from(1, 3, false, {"head.weight"}, one_state), to(2, 3, false, {"head.weight"}, one_state);
  std::vector<NamedTensor> tensors = checkpoint::TrainingState(from.store, *rule).read();
  tensors.back().tensor = Tensor({1}, DType::F32);
  ASSERT_TRUE(has(tensors.back().name, "optimizer/momentum/"));
  const auto before = values(to.store, "body.weight");
  EXPECT_TRUE(has(error_of([&] { checkpoint::TrainingState(to.store, *rule).load(io::source_of(tensors)); }), "(1)"));
  EXPECT_EQ(values(to.store, "body.weight"), before);
}

}  // namespace
}  // namespace lockstep::train

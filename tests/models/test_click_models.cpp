// Every line of the table of click models builds, trains and predicts; the parts of which they are made against plain
// loops.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "lockstep/ops/pair_products.h"
#include "lockstep/plan/compiled_model.h"
#include "models/zoo/click_model.h"
#include "models/zoo/click_parts.h"
#include "models/zoo/click_task.h"
#include "models/zoo/deepfm.h"
#include "models/zoo/dlrm.h"

namespace lockstep::models {
namespace {

constexpr std::int64_t kSamples = 5;

struct Case {
  const char* model;
  ClickModelConfig config;
  ClickLoss loss = ClickLoss::Bce;
  bool negatives = false;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"dlrm", {.dense = 3, .fields = 4, .rows = 20, .dim = 4, .bottom = {5}, .top = {6, 3}, .dropout = 0.2}},
      {"dlrm", {.fields = 2, .rows = 20, .dim = 4}},
      {"deepfm", {.dense = 3, .fields = 4, .rows = 20, .dim = 4, .top = {6}}},
      {"deepfm", {.fields = 4, .rows = 20, .dim = 4}},
      {"wide-deep", {.dense = 1, .fields = 1, .rows = 20, .dim = 4, .dropout = 0.5}},
      {"towers", {.fields = 2, .rows = 20, .dim = 4}},
      {"towers", {.dense = 2, .fields = 4, .rows = 20, .dim = 4, .user_fields = 2}, ClickLoss::InBatch},
      {"towers", {.fields = 3, .rows = 20, .dim = 4, .item_counts = std::vector<double>(20, 3)}, ClickLoss::InBatch},
      {"dlrm", {.dense = 3, .fields = 3, .rows = 20, .bags = {{.field = 1, .columns = 3}}, .dim = 4}},
      {"deepfm", {.fields = 2, .rows = 20, .bags = {{0, 2, BagMode::Sum}, {1, 3, BagMode::Max}}, .dim = 4}},
      {"towers",
       {.fields = 4,
        .rows = 20,
        .bags = {{.field = 0, .columns = 2}, {.field = 3, .columns = 3}},
        .dim = 4,
        .user_fields = 2,
        .item_counts = std::vector<double>(20, 3)},
       ClickLoss::InBatch,
       true},
  };
  return all;
}

constexpr std::int64_t kNegatives = 2, kItemColumns = 4;  // of the case with negatives

std::map<std::string, Type> types(const ClickModelConfig& config) {
  std::map<std::string, Type> types{
      {"ids", {Shape{kSamples, IdFields(config).first_column(config.fields)}, DType::I32}},
      {"negatives", {Shape{kSamples, kNegatives, kItemColumns}, DType::I32}},
      {"label", {Shape{kSamples}, DType::F32}}};
  if (config.dense > 0) types["dense"] = {Shape{kSamples, config.dense}, DType::F32};
  return types;
}

void fill(plan::Plan& plan, const ClickModelConfig& config) {
  RandomStream random(3, 0);
  const std::int64_t columns = IdFields(config).first_column(config.fields);
  auto* ids = static_cast<std::int32_t*>(plan.input("ids"));
  for (std::int64_t i = 0; i < kSamples * columns; ++i) ids[i] = static_cast<std::int32_t>(random.below(20));
  for (const BagField& bag : config.bags) ids[IdFields(config).first_column(bag.field)] = 20;  // a place without an id
  if (auto* negatives = static_cast<std::int32_t*>(plan.input("negatives"))) {
    for (std::int64_t i = 0; i < kSamples * kNegatives * kItemColumns; ++i)
      negatives[i] = static_cast<std::int32_t>(random.below(20));
  }
  if (auto* dense = static_cast<float*>(plan.input("dense"))) {
    for (std::int64_t i = 0; i < kSamples * config.dense; ++i) dense[i] = static_cast<float>(random.normal());
  }
  if (auto* label = static_cast<float*>(plan.input("label"))) {
    for (std::int64_t i = 0; i < kSamples; ++i) label[i] = i % 2 == 0 ? 1.0F : 0.0F;
  }
  if (void* step = plan.input(Graph::kStep)) *static_cast<std::int64_t*>(step) = 7;
  if (auto* sample = static_cast<std::int64_t*>(plan.input(Graph::kSampleIds))) {
    for (std::int64_t i = 0; i < plan.batch(); ++i) sample[i] = 10 * i;
  }
}

class EveryClickModel : public testing::TestWithParam<std::size_t> {};

TEST_P(EveryClickModel, TrainsAndPredictsALogitForEachSample) {
  const Case& tested = cases()[GetParam()];
  const auto model = build_click_model(tested.model, tested.config);
  model->add_state("state", 4);
  const ClickTaskOptions options{.loss = tested.loss, .dense = tested.config.dense > 0, .negatives = tested.negatives};
  for (const bool bf16 : {false, true}) {
    plan::CompiledModel compiled(model->named_parameters(),
                                 [&](const plan::Inputs& in) { return click_task(*model, in, options); }, {},
                                 {.bf16 = bf16});
    plan::Plan& training = compiled.plan(Mode::Train, types(tested.config));  // throws if a parameter has no gradient
    fill(training, tested.config);
    training.run();
    EXPECT_TRUE(std::isfinite(training.loss()));
    const double weight = training.weight();
    EXPECT_EQ(weight, tested.loss == ClickLoss::InBatch ? 3 : kSamples);  // clicks, or samples
    fill(training, tested.config);
    std::fill_n(static_cast<float*>(training.input("label")), kSamples, 0.0F);
    training.run();
    EXPECT_GT(training.weight(), 0);  // also of samples without a click
    if (tested.loss == ClickLoss::InBatch) {
      EXPECT_EQ(training.loss(), 0);
    }
    plan::Plan& plan = compiled.plan(Mode::Eval, types(tested.config));
    fill(plan, tested.config);
    plan.run();
    const Tensor prediction = plan.prediction();
    ASSERT_EQ(prediction.shape(), Shape{kSamples});
    std::set<float> different;
    for (const float value : prediction.data<float>()) {
      EXPECT_TRUE(std::isfinite(value));
      different.insert(value);
    }
    EXPECT_GT(different.size(), 1U);
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, EveryClickModel, testing::Range(std::size_t{0}, cases().size()));

TEST(ClickModels, EachHasACase) {
  std::set<std::string> tested;
  for (const Case& of : cases()) tested.insert(of.model);
  for (const ClickModelEntry& entry : click_models()) EXPECT_TRUE(tested.contains(entry.name)) << entry.name;
}

TEST(ClickModels, SizesThatTheyCannotTakeAreNamed) {
  const auto message = [](const char* model, const ClickModelConfig& config) {
    try {
      build_click_model(model, config);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(message("dlrm", {.fields = 1, .rows = 20}), "[dlrm] 1 field of ids and no dense numbers, expected a pair");
  EXPECT_NE(message("towers", {.fields = 2, .rows = 20, .user_fields = 2}).find("2 of 2 fields"), std::string::npos);
  EXPECT_NE(message("fm", {.fields = 2, .rows = 20}).find("expected one of dlrm, deepfm, wide-deep, towers"),
            std::string::npos);
}

// Runs a function of x (2, 4, 3) and returns its prediction.
std::vector<double> of_vectors(const std::function<Value(Value)>& function, const std::vector<double>& x) {
  plan::CompiledModel model({}, [&](const plan::Inputs& in) { return plan::Traced{.prediction = function(in["x"])}; },
                            {.dtype = DType::F64});
  plan::Plan& plan = model.plan(Mode::Eval, {{"x", {Shape{2, 4, 3}, DType::F64}}});
  std::ranges::copy(x, static_cast<double*>(plan.input("x")));
  plan.run();
  const Tensor result = plan.prediction();
  return {result.data<double>().begin(), result.data<double>().end()};
}

TEST(ClickParts, AFieldThatIsABagHasOneVector) {
  const ClickModelConfig config{.fields = 3, .rows = 9, .bags = {{1, 2, BagMode::Sum}}};
  const std::vector<std::int32_t> ids{0, 3, 9, 7, 1, 9, 9, 8};  // bags {3} and {}
  plan::CompiledModel model({},
                            [&](const plan::Inputs& in) {
                              return plan::Traced{.prediction = IdFields(config).vectors(in["rows"], in["ids"])};
                            },
                            {.dtype = DType::F64});
  plan::Plan& plan =
      model.plan(Mode::Eval, {{"rows", {Shape{2, 4, 1}, DType::F64}}, {"ids", {Shape{2, 4}, DType::I32}}});
  auto* const rows = static_cast<double*>(plan.input("rows"));
  for (int i = 0; i < 8; ++i) rows[i] = i + 1;
  std::ranges::copy(ids, static_cast<std::int32_t*>(plan.input("ids")));
  plan.run();
  const Tensor result = plan.prediction();
  ASSERT_EQ(result.shape(), (Shape{2, 3, 1}));
  const auto values = result.data<double>();
  EXPECT_EQ(std::vector<double>(values.begin(), values.end()), (std::vector<double>{1, 2, 4, 5, 0, 8}));
}

TEST(ClickParts, ProductsOfPairs) {
  std::vector<double> x;
  RandomStream random(9, 0);
  for (int i = 0; i < 24; ++i) x.push_back(random.normal());
  std::vector<double> expected, sums;
  for (std::size_t n = 0; n < 2; ++n) {
    double sum = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        double product = 0;
        for (std::size_t e = 0; e < 3; ++e) product += x[(n * 4 + i) * 3 + e] * x[(n * 4 + j) * 3 + e];
        expected.push_back(product);
        sum += product;
      }
    }
    sums.push_back(sum);
  }
  const std::vector<double> pairs = of_vectors(pair_products, x), order = of_vectors(second_order, x);
  ASSERT_EQ(pairs.size(), expected.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) EXPECT_NEAR(pairs[i], expected[i], 1e-14);
  for (std::size_t n = 0; n < 2; ++n) EXPECT_NEAR(order[n], sums[n], 1e-13);
}

}  // namespace
}  // namespace lockstep::models

// Every line of the table of field models: it builds for the shapes that it takes, its plans compile, it runs; and what
// is particular to single models.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "lockstep/losses/regression.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/plan/compiled_model.h"
#include "models/zoo/cosmoflow.h"
#include "models/zoo/field_model.h"

namespace lockstep {
namespace {

using models::FieldModelConfig;

struct Case {
  const char* model;
  FieldModelConfig config;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"mlp", {.input = {3}, .output = {2}, .width = 8, .depth = 1}},
      {"mlp", {.input = {2, 4, 4}, .output = {5}, .width = 8, .depth = 1}},
      {"cnn", {.input = {2, 12}, .output = {1, 12}, .width = 4, .depth = 1}},
      {"cnn", {.input = {2, 6, 5}, .output = {1, 6, 5}, .width = 4, .depth = 1}},
      {"resnet", {.input = {2, 32}, .output = {1}, .width = 4}},
      {"resnet", {.input = {2, 12, 9}, .output = {3}, .width = 4}},
      {"resnet", {.input = {1, 4, 4, 8}, .output = {2}, .width = 4, .depth = 2}},
      {"resnet", {.input = {2, 8, 12}, .output = {1, 8, 12}, .width = 4, .depth = 1}},
      {"resnet", {.input = {2, 7, 5}, .output = {2, 7, 5}, .width = 4, .depth = 1}},
      {"autoencoder", {.input = {1, 8, 16}, .output = {2, 8, 16}, .width = 4}},
      {"vae", {.input = {1, 16}, .output = {1, 16}, .width = 4, .latent = 3}},
      {"vae", {.input = {2, 8, 8}, .output = {1, 8, 8}, .width = 4, .depth = 2}},
      {"vae", {.input = {1, 4, 4, 4}, .output = {1, 4, 4, 4}, .width = 4, .depth = 1, .latent = 2}},
      {"unet", {.input = {1, 8}, .output = {1, 8}, .width = 4, .depth = 1}},
      {"unet", {.input = {1, 4, 8, 8}, .output = {2, 4, 8, 8}, .width = 4}},
      {"fno", {.input = {1, 9, 8}, .output = {2, 9, 8}, .width = 4, .depth = 2, .modes = 3}},
      {"cosmoflow", {.input = {1, 33}, .output = {1}, .width = 4}},
      {"cosmoflow", {.input = {2, 12, 9}, .output = {2}, .width = 4, .dropout = 0.5}},
      {"cosmoflow", {.input = {4, 8, 8, 8}, .output = {4}, .width = 4}},
      {"lstm", {.input = {12, 3}, .output = {3}, .width = 8, .depth = 2, .dropout = 0.2}},
      {"lstm", {.input = {6}, .output = {2, 1}, .width = 8}},
      {"gru", {.input = {7, 2}, .output = {1}, .width = 8}},
      {"tcn", {.input = {12, 3}, .output = {1, 3}, .width = 6, .dropout = 0.1}},
      {"tcn", {.input = {5}, .output = {2}, .width = 6, .depth = 1}},
      {"encoder", {.input = {18, 3}, .output = {2, 3}, .width = 32, .dropout = 0.1}},
      {"encoder", {.input = {5}, .output = {2}, .width = 6, .depth = 1}},
  };
  return all;
}

class EveryFieldModel : public testing::TestWithParam<std::size_t> {};

void run(plan::Plan& plan) {
  RandomStream random(3, 0);
  for (const char* name : {"input", "target"}) {
    auto* values = static_cast<float*>(plan.input(name));
    if (values == nullptr) continue;
    for (std::int64_t i = 0; i < plan.input_type(name)->shape.elements(); ++i)
      values[i] = static_cast<float>(random.normal());
  }
  if (void* step = plan.input(Graph::kStep)) *static_cast<std::int64_t*>(step) = 7;
  if (auto* ids = static_cast<std::int64_t*>(plan.input(Graph::kSampleIds))) {
    for (std::int64_t i = 0; i < plan.batch(); ++i) ids[i] = 10 * i;
  }
  plan.run();
}

plan::ModelFunction regression(const models::FieldModel& model) {
  return [&model](const plan::Inputs& in) {
    const auto [prediction, penalty] = model.with_penalty(in["input"]);
    Loss loss = mean_squared_error(prediction, in["target"]);
    if (penalty) loss.mean = loss.mean + penalty;
    return plan::Traced{.loss = loss, .prediction = prediction};
  };
}

TEST_P(EveryFieldModel, CompilesForTrainingAndPredictsFiniteNumbersOfTheRightShape) {
  const Case& tested = cases()[GetParam()];
  const std::int64_t samples = 3;
  const auto model = models::build_field_model(tested.model, tested.config);
  plan::CompiledModel compiled(model->named_parameters(), regression(*model));
  const std::map<std::string, Type> inputs{{"input", {tested.config.input.batched(samples), DType::F32}},
                                           {"target", {tested.config.output.batched(samples), DType::F32}}};
  plan::Plan& training = compiled.plan(Mode::Train, inputs);  // throws if a parameter has no gradient
  run(training);
  EXPECT_TRUE(std::isfinite(training.loss()));
  plan::Plan& plan = compiled.plan(Mode::Eval, inputs);
  run(plan);
  const Tensor prediction = plan.prediction();
  ASSERT_EQ(prediction.shape(), tested.config.output.batched(samples));
  const std::span<const float> values = prediction.data<float>();
  double spread = 0;  // the samples differ, so their predictions must
  for (std::size_t i = 0; i < values.size() / 3; ++i) {
    EXPECT_TRUE(std::isfinite(values[i]));
    spread += std::abs(values[i] - values[values.size() / 3 + i]);
  }
  EXPECT_GT(spread, 0);
}

TEST_P(EveryFieldModel, TrainsInBf16) {
  const Case& tested = cases()[GetParam()];
  const auto model = models::build_field_model(tested.model, tested.config);
  plan::CompiledModel compiled(model->named_parameters(), regression(*model), {}, {.bf16 = true});
  plan::Plan& training = compiled.plan(Mode::Train, {{"input", {tested.config.input.batched(3), DType::F32}},
                                                     {"target", {tested.config.output.batched(3), DType::F32}}});
  run(training);
  EXPECT_TRUE(std::isfinite(training.loss()));
}

INSTANTIATE_TEST_SUITE_P(Zoo, EveryFieldModel, testing::Range(std::size_t{0}, cases().size()), [](const auto& tested) {
  const Case& of = cases()[tested.param];
  return formatted("{}_{}", of.model, tested.param);
});

TEST(FieldModels, EachHasACase) {
  std::set<std::string> tested;
  for (const Case& of : cases()) tested.insert(of.model);
  for (const models::FieldModelEntry& entry : models::field_models())
    EXPECT_TRUE(tested.contains(entry.name)) << entry.name;
}

std::string message(const char* model, const FieldModelConfig& config) {
  try {
    models::build_field_model(model, config);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(FieldModels, ShapesThatTheyCannotTakeAreNamed) {
  EXPECT_EQ(message("resnet", {.input = {4}, .output = {1}}),
            "[resnet] a sample's input is (4), expected (channels, 1 to 3 sizes)");
  EXPECT_EQ(message("cosmoflow", {.input = {4}, .output = {1}}),
            "[cosmoflow] a sample's input is (4), expected (channels, 1 to 3 sizes)");
  EXPECT_EQ(message("lstm", {.input = {1, 8, 3}, .output = {3}}),
            "[lstm] a sample's input is (1, 8, 3), expected (time, features) or (time)");
  EXPECT_EQ(message("vae", {.input = {1, 12}, .output = {1, 12}}),
            "[vae] fields are (12), and 3 levels need sizes that 8 divides; expected such sizes, or fewer levels");
  EXPECT_EQ(message("lstm", {.input = {8, 3}, .output = {3}, .dropout = 1}),
            "[lstm] dropout 1 and weight 1 of the divergence, expected a number in [0, 1) and at least 0");
  EXPECT_EQ(message("unets", {.input = {8, 3}, .output = {3}}),
            "[models] there is no model 'unets' for fields, expected one of mlp, cnn, resnet, autoencoder, vae, unet, "
            "fno, cosmoflow, lstm, gru, tcn, encoder");
}

TEST(CosmoFlow, HasTheSizeOfTheReference) {
  std::int64_t parameters = 0;
  const models::CosmoFlow<3> model{models::CosmoFlowConfig()};
  for (const NamedParameter& p : model.named_parameters()) parameters += p.parameter->shape.elements();
  // 8 elements of a filter and 4, 32, ..., 512 channels with biases; 512 channels at 4 x 4 x 4 points; 128, 64, 4.
  const std::int64_t convolutions = 8 * (4 * 32 + 32 * 64 + 64 * 128 + 128 * 256 + 256 * 512) + 32 * 31;
  EXPECT_EQ(parameters, convolutions + (32768 + 1) * 128 + (128 + 1) * 64 + (64 + 1) * 4);
  Graph graph(Mode::Eval, DType::F32);
  EXPECT_EQ(model(graph.input("input", {{2, 4, 128, 128, 128}, DType::F32})).shape(), (Shape{2, 4}));
}

TEST(CosmoFlow, NamesLevelsThatLeaveNothing) {
  try {
    const models::CosmoFlow<2> model({.input = {4, 3, 3}, .output = {1}, .levels = 2, .kernel = 3});
    FAIL() << "a field of 3 x 3 points was halved twice";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "[cosmoflow] a sample's input is (4, 3, 3), and 2 levels leave nothing of it; expected fewer levels");
  }
}

TEST(Tcn, SeesTheFirstStepAndNoMoreBlocksThanThatTakes) {
  const auto blocks = [](std::int64_t steps) {
    const auto model = models::build_field_model("tcn", {.input = {steps, 1}, .output = {1}});
    std::set<std::string> names;
    for (const NamedParameter& p : model->named_parameters()) {
      if (p.name.starts_with("block")) names.insert(p.name.substr(0, p.name.find('.')));
    }
    return names.size();
  };
  // A block reads 4 more steps than the one before it made, 4 times its dilation: 5, 13, 29, ... steps in all.
  EXPECT_EQ(blocks(5), 1U);
  EXPECT_EQ(blocks(6), 2U);
  EXPECT_EQ(blocks(13), 2U);
  EXPECT_EQ(blocks(14), 3U);
  EXPECT_EQ(blocks(29), 3U);
}

// A VAE whose distribution is known: weights of "mean" and "log_variance" are 0, so their biases are the parameters of
// every sample's distribution.
class KnownVae : public testing::Test {
 public:
  KnownVae() {
    plan(Mode::Eval);  // gives the parameters their memory
    for (const auto& [name, value] : {std::pair("mean", 0.5F), std::pair("log_variance", -1.0F)}) {
      fill(formatted("{}.weight", name), 0);
      fill(formatted("{}.bias", name), value);
    }
    compiled_.parameters().refresh();
  }

 protected:
  void fill(const std::string& name, float value) {
    Tensor tensor = compiled_.parameters().read(name);
    for (float& v : tensor.data<float>()) v = value;
    compiled_.parameters().write(name, tensor);
  }
  plan::Plan& plan(Mode mode) { return compiled_.plan(mode, {{"input", {Shape{4, 1, 8}, DType::F32}}}); }

  std::unique_ptr<models::FieldModel> model_ = models::build_field_model(
      "vae", {.input = {1, 8}, .output = {1, 8}, .width = 4, .depth = 1, .latent = 2, .kl_weight = 3});
  plan::CompiledModel compiled_{model_->named_parameters(), [this](const plan::Inputs& in) {
                                  const auto [prediction, penalty] = model_->with_penalty(in["input"]);
                                  return plan::Traced{.loss = penalty, .prediction = prediction};
                                }};
};

TEST_F(KnownVae, PenaltyIsTheDivergence) {
  run(plan(Mode::Eval));
  const double kl = 0.5 * 2 * (0.25 + std::exp(-1.0) - 1 + 1);  // of two numbers of a sample
  EXPECT_NEAR(plan(Mode::Eval).loss(), 3 * 2 * kl / 8, 1e-6);
}

TEST_F(KnownVae, DrawsInTrainingAlone) {
  for (const Mode mode : {Mode::Train, Mode::Eval}) {
    Graph graph(mode, DType::F32);
    (*model_)(graph.input("input", {{2, 1, 8}, DType::F32}));
    int draws = 0;
    for (const Node& node : graph.nodes()) draws += node.op && node.op->name() == "normal_noise";
    EXPECT_EQ(draws, mode == Mode::Train);
  }
}

}  // namespace
}  // namespace lockstep

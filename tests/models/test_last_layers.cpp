// The last layers of models, which --replace-head leaves new: of the zoo's, and of graphs with several outputs.
#include "lockstep/plan/last_layers.h"

#include <gtest/gtest.h>

#include "lockstep/core/error.h"
#include "lockstep/nn/layers.h"
#include "lockstep/nn/sequential.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "models/zoo/classify.h"
#include "models/zoo/field_model.h"
#include "models/zoo/registry.h"

namespace lockstep {
namespace {

using Names = std::vector<std::string>;

Names head_of_classifier(const std::string& name) {
  const models::ModelEntry& entry = models::find_model(name);
  const auto network = models::build_model(name);
  return plan::last_layers(network->named_parameters(), models::classify(*network),
                           {{"image", {entry.image.batched(2), DType::F32}}, {"label", {Shape{2}, DType::I32}}});
}

Names head_of_fields(const std::string& name) {
  const auto network = models::build_field_model(name, {.input = {2, 16, 16}, .output = {1, 16, 16}, .width = 4});
  return plan::last_layers(network->named_parameters(),
                           [&](const plan::Inputs& in) { return plan::Traced{.prediction = (*network)(in["input"])}; },
                           {{"input", {Shape{2, 2, 16, 16}, DType::F32}}});
}

TEST(LastLayers, OfTheZooAreItsHeads) {
  for (const auto& [name, head] : {std::pair{"toy", "fc3"},
                                   {"mnist_mlp", "4"},
                                   {"resnet20", "fc"},
                                   {"resnet18", "fc"},
                                   {"vgg11_bn", "classifier.6"}}) {
    const std::string layer(head);
    EXPECT_EQ(head_of_classifier(name), (Names{layer + ".weight", layer + ".bias"})) << name;
  }
  for (const auto& [name, head] : {std::pair{"mlp", "out"}, {"unet", "head"}, {"fno", "project2"}}) {
    const std::string layer(head);
    EXPECT_EQ(head_of_fields(name), (Names{layer + ".weight", layer + ".bias"})) << name;
  }
}

struct TwoHeads : nn::Module {
  nn::Child<nn::Linear> trunk{this, "trunk", {.in = 3, .out = 4}};
  nn::Child<nn::Linear> mean{this, "mean", {.in = 4, .out = 2}};
  nn::Child<nn::Linear> spread{this, "spread", {.in = 4, .out = 2}};
  nn::Child<nn::Linear> unused{this, "unused", {.in = 4, .out = 2}};
};

TEST(LastLayers, OfSeveralOutputsAreAll) {
  const TwoHeads network;
  const auto function = [&](const plan::Inputs& in) {
    const Value x = relu(network.trunk(in["x"]));
    return plan::Traced{.loss = lockstep::mean(square(network.mean(x)) * exp(network.spread(x)))};
  };
  EXPECT_EQ(plan::last_layers(network.named_parameters(), function, {{"x", {Shape{2, 3}, DType::F32}}}),
            (Names{"mean.weight", "mean.bias", "spread.weight", "spread.bias"}));
  EXPECT_THROW(plan::last_layers(network.named_parameters(), [](const plan::Inputs&) { return plan::Traced{}; },
                                 {{"x", {Shape{2, 3}, DType::F32}}}),
               Error);
}

// A layer that is called twice stands before itself and is last all the same; a sum of branches orders nothing.
TEST(LastLayers, MayBeCalledTwiceOrStandBesideEachOther) {
  nn::Sequential shared, a, b;
  shared.append<nn::Linear>(nn::LinearConfig{.in = 3, .out = 3});
  const auto twice = [&](const plan::Inputs& in) { return plan::Traced{.prediction = shared(shared(in["x"]))}; };
  const std::map<std::string, Type> inputs{{"x", {Shape{2, 3}, DType::F32}}};
  EXPECT_EQ(plan::last_layers(shared.named_parameters(), twice, inputs), (Names{"0.weight", "0.bias"}));

  TwoHeads network;
  const auto sum = [&](const plan::Inputs& in) {
    const Value x = network.trunk(in["x"]);
    return plan::Traced{.prediction = network.mean(x) + network.spread(x)};
  };
  EXPECT_EQ(plan::last_layers(network.named_parameters(), sum, inputs).size(), 4U);
}

}  // namespace
}  // namespace lockstep

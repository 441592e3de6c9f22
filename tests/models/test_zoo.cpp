// Every line of the registry: it builds, its plans compile, it runs; and the small models' names and shapes.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/ops/cross_entropy.h"
#include "lockstep/plan/compiled_model.h"
#include "models/zoo/densenet.h"
#include "models/zoo/lenet.h"
#include "models/zoo/mlp.h"
#include "models/zoo/mnist_convnet.h"
#include "models/zoo/mobilenet.h"
#include "models/zoo/registry.h"
#include "models/zoo/resnet.h"

namespace lockstep {
namespace {

std::string state_of(const models::Classifier& model) {
  std::string text;
  for (const NamedParameter& p : model.named_parameters()) text += p.name + " " + p.parameter->shape.str() + "\n";
  return text;
}

std::int64_t elements(const models::Classifier& model) {
  std::int64_t sum = 0;
  for (const NamedParameter& p : model.named_parameters()) sum += p.parameter->shape.elements();
  return sum;
}

TEST(LeNet, IsThatOfTheTutorial) {
  EXPECT_EQ(state_of(models::LeNet()),
            "conv1.weight (6, 3, 5, 5)\nconv1.bias (6)\nconv2.weight (16, 6, 5, 5)\nconv2.bias (16)\n"
            "fc1.weight (120, 400)\nfc1.bias (120)\nfc2.weight (84, 120)\nfc2.bias (84)\n"
            "fc3.weight (10, 84)\nfc3.bias (10)\n");
  EXPECT_EQ(elements(models::LeNet()), 62006);
}

TEST(LeNet, SizesItsFirstLinearLayerByTheImage) {
  const models::LeNet model({.image = {1, 28, 28}, .classes = 5});
  Graph graph(Mode::Eval, DType::F32);
  EXPECT_EQ(model(graph.input("image", {{3, 1, 28, 28}, DType::F32})).shape(), (Shape{3, 5}));
  EXPECT_THROW(models::LeNet({.image = {3, 8, 8}}), Error);
  EXPECT_THROW(models::LeNet({.image = {}}), Error);
}

TEST(MnistConvNet, IsThatOfTheExample) {
  EXPECT_EQ(state_of(models::MnistConvNet()),
            "conv1.weight (32, 1, 3, 3)\nconv1.bias (32)\nconv2.weight (64, 32, 3, 3)\nconv2.bias (64)\n"
            "fc1.weight (128, 9216)\nfc1.bias (128)\nfc2.weight (10, 128)\nfc2.bias (10)\n");
  EXPECT_EQ(elements(models::MnistConvNet()), 1199882);
  EXPECT_THROW(models::MnistConvNet({.image = {28, 28}}), Error);
}

TEST(MnistConvNet, DropsOutInTrainingOnly) {
  const models::MnistConvNet model;
  for (const Mode mode : {Mode::Train, Mode::Eval}) {
    Graph graph(mode, DType::F32);
    model(graph.input("image", {{2, 1, 28, 28}, DType::F32}));
    std::set<std::string> places;
    for (const Node& node : graph.nodes()) {
      if (node.op && node.op->name() == "dropout") places.insert(node.path);
    }
    EXPECT_EQ(places, mode == Mode::Train ? (std::set<std::string>{"dropout1", "dropout2"}) : std::set<std::string>{});
  }
}

TEST(Mlp, NamesItsLayersAsASequential) {
  EXPECT_EQ(
      state_of(models::Mlp({256, 1024, 1024, 10})),
      "0.weight (1024, 256)\n0.bias (1024)\n2.weight (1024, 1024)\n2.bias (1024)\n4.weight (10, 1024)\n4.bias (10)\n");
  EXPECT_THROW(models::Mlp({256}), Error);
  EXPECT_THROW(models::Mlp({256, 0, 10}), Error);
}

TEST(Registry, NamesAreUniqueAndFound) {
  std::set<std::string> names;
  for (const models::ModelEntry& e : models::model_table()) {
    EXPECT_TRUE(names.insert(e.name).second) << e.name;
    EXPECT_EQ(models::find_model(e.name).description, e.description);
  }
  for (const char* name : {"toy", "mlp", "mnist_mlp", "mnist_convnet", "resnet18", "resnet152", "resnet50_cifar",
                           "resnet20", "resnet110", "resnext50_32x4d", "wide_resnet50_2", "densenet121",
                           "densenet100_cifar", "mobilenet_v2", "vit_ti_16", "vit_b_16", "deit_s_16", "vit_ti_cifar"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(Registry, AnUnknownNameIsAnErrorThatListsTheNames) {
  try {
    models::build_model("resnet19");
    FAIL() << "resnet19 was built";
  } catch (const Error& e) {
    const std::string text = e.what();
    for (const char* part : {"'resnet19'", "toy", "resnet18", "resnet110"})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

TEST(Registry, TakesOtherClassesAndImages) {
  const auto model = models::build_model("resnet20", 100, {1, 28, 28});
  Graph graph(Mode::Eval, DType::F32);
  EXPECT_EQ((*model)(graph.input("image", {{2, 1, 28, 28}, DType::F32})).shape(), (Shape{2, 100}));
  EXPECT_THROW(models::build_model("resnet20", -1), Error);
  EXPECT_THROW(models::build_model("resnet20", 10, {3, 0, 32}), Error);
  EXPECT_THROW(models::build_model("resnet20", 10, {256}), Error);
}

struct Known {
  const char* name;
  std::int64_t parameters;  // that are trained, as torchvision counts them
};

class TorchvisionModel : public testing::TestWithParam<Known> {};

TEST_P(TorchvisionModel, HasItsSize) {
  const auto model = models::build_model(GetParam().name);
  std::int64_t parameters = 0;
  for (const NamedParameter& p : model->named_parameters()) {
    if (p.parameter->role != Role::Buffer) parameters += p.parameter->shape.elements();
  }
  EXPECT_EQ(parameters, GetParam().parameters);
}

INSTANTIATE_TEST_SUITE_P(Zoo, TorchvisionModel,
                         testing::Values(Known{"mobilenet_v2", 3504872}, Known{"densenet121", 7978856},
                                         Known{"densenet161", 28681000}, Known{"densenet169", 14149480},
                                         Known{"densenet201", 20013928}, Known{"resnext50_32x4d", 25028904},
                                         Known{"resnext101_32x8d", 88791336}, Known{"wide_resnet50_2", 68883240},
                                         Known{"wide_resnet101_2", 126886696}, Known{"vit_b_16", 86567656},
                                         // timm's vit_tiny_patch16_224 and vit_small_patch16_224.
                                         Known{"vit_ti_16", 5717416}, Known{"vit_s_16", 22050664},
                                         // Huang et al. (2016), table 2: 0.8 million.
                                         Known{"densenet100_cifar", 769162}),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(MobileNetV2, KeepsTheSizesOfSmallImages) {
  const auto sizes = [](const char* name) {
    const auto model = models::build_model(name, 10, {3, 32, 32});
    Graph graph(Mode::Eval, DType::F32);
    (*model)(graph.input("image", {{1, 3, 32, 32}, DType::F32}));
    std::int64_t last = 0;
    for (const Node& node : graph.nodes()) {
      if (node.op && node.op->name() == "conv2d") last = node.outputs[0].shape[2];
    }
    return last;
  };
  EXPECT_EQ(sizes("mobilenet_v2"), 1);
  EXPECT_EQ(sizes("mobilenet_v2_cifar"), 4);
}

TEST(WiderModels, WhatTheyCannotBeIsNamed) {
  const auto message = [](auto make) -> std::string {
    try {
      make();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message([] { models::densenet_config(120); }),
            "[densenet] there is no depth 120; depths: 121, 161, 169, 201 as in torchvision, 100 for CIFAR");
  EXPECT_EQ(message([] { models::MobileNetV2({.width = 0}); }),
            "[mobilenet] width 0, input channels 3, classes 1000: all must be positive");
  EXPECT_EQ(message([] { models::ResNet({.groups = 32, .width_per_group = 4}); }),
            "[resnet] 32 groups of width 4: basic blocks have 1 of width 64, only bottlenecks have others");
  EXPECT_EQ(message([] {
              models::build_model("densenet121", 10, {32, 32});
            }),
            "[densenet] images are (32, 32), expected (channels, height, width)");
}

class EveryModel : public testing::TestWithParam<std::string> {};

// Small images, so that the deep ones stay quick: what they need, where the registry's own are large.
Shape small_image_of(const models::ModelEntry& entry) {
  return entry.image == Shape{3, 224, 224} ? Shape{3, 32, 32} : entry.image;
}

TEST_P(EveryModel, CompilesForTrainingAndEvaluatesToFiniteLogits) {
  const models::ModelEntry& entry = models::find_model(GetParam());
  const std::int64_t samples = 2, classes = 7;
  const auto model = models::build_model(entry.name, classes, small_image_of(entry));
  const auto function = [&](const plan::Inputs& in) {
    const Value logits = (*model)(in["image"]);
    return plan::Traced{.loss = cross_entropy(logits, in["label"]), .prediction = logits};
  };
  plan::CompiledModel compiled(model->named_parameters(), function);
  const std::map<std::string, Type> inputs{{"image", {small_image_of(entry).batched(samples), DType::F32}},
                                           {"label", {Shape{samples}, DType::I32}}};
  const plan::Plan& training = compiled.plan(Mode::Train, inputs);  // throws if a parameter has no gradient
  EXPECT_EQ(training.batch(), samples);

  plan::Plan& plan = compiled.plan(Mode::Eval, inputs);
  EXPECT_GT(training.flops(), 2 * plan.flops());
  const Type& type = *plan.input_type("image");
  auto* pixels = static_cast<float*>(plan.input("image"));
  RandomStream random(3, 0);
  for (std::int64_t i = 0; i < type.shape.elements(); ++i) pixels[i] = static_cast<float>(random.normal());
  auto* labels = static_cast<std::int32_t*>(plan.input("label"));
  for (std::int64_t i = 0; i < samples; ++i) labels[i] = static_cast<std::int32_t>(i % classes);
  plan.run();
  const Tensor logits = plan.prediction();
  EXPECT_EQ(logits.shape(), (Shape{samples, classes}));
  double spread = 0;  // the samples differ, so their logits must
  for (std::int64_t c = 0; c < classes; ++c) {
    const float a = logits.data<float>()[static_cast<std::size_t>(c)],
                b = logits.data<float>()[static_cast<std::size_t>(classes + c)];
    EXPECT_TRUE(std::isfinite(a) && std::isfinite(b));
    spread += std::abs(a - b);
  }
  EXPECT_GT(spread, 0);
  EXPECT_TRUE(std::isfinite(plan.loss()));
}

// Without the largest ones, which are ResNets of other widths and groups, as resnext50_32x4d is.
std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const models::ModelEntry& e : models::model_table()) {
    if (!e.name.starts_with("wide_") && e.name != "resnext101_32x8d") names.push_back(e.name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Zoo, EveryModel, testing::ValuesIn(all_names()),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace lockstep

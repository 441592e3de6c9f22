#include "models/zoo/resnet.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/nn/summary.h"
#include "tests/models/resnet18_state.h"

namespace lockstep {
namespace {

using Stem = models::ResNetConfig::Stem;

std::int64_t trainable_elements(const models::Classifier& model) {
  std::int64_t sum = 0;
  for (const NamedParameter& p : model.named_parameters()) {
    if (p.parameter->role != Role::Buffer) sum += p.parameter->shape.elements();
  }
  return sum;
}

std::map<std::string, Shape> shapes(const models::Classifier& model) {
  std::map<std::string, Shape> all;
  for (const NamedParameter& p : model.named_parameters()) all[p.name] = p.parameter->shape;
  return all;
}

nn::Summary summary_of(const models::Classifier& model, Shape input, Mode mode = Mode::Eval) {
  return nn::summarize(
      model, [&](Value x) { return model(x); }, {std::move(input), DType::F32}, mode);
}

Shape output_of(const nn::Summary& summary, const std::string& path) {
  for (const nn::SummaryRow& row : summary.rows) {
    if (row.path == path) return row.output.shape;
  }
  ADD_FAILURE() << "no row of " << path;
  return {};
}

TEST(ResNet, EighteenHasTorchvisionsStateInItsOrder) {
  const models::ResNet model(models::resnet_config(18));
  std::string state;
  for (const NamedParameter& p : model.named_parameters()) {
    state += p.name + " " + p.parameter->shape.str() + "\n";
  }
  EXPECT_EQ(state, kResNet18State);
}

struct KnownResNet {
  int depth;
  std::int64_t parameters;
  std::size_t state;  // keys of the state dict
};

class TorchvisionResNet : public testing::TestWithParam<KnownResNet> {};

TEST_P(TorchvisionResNet, HasAsManyParameters) {
  const models::ResNet model(models::resnet_config(GetParam().depth));
  EXPECT_EQ(trainable_elements(model), GetParam().parameters);
  EXPECT_EQ(model.named_parameters().size(), GetParam().state);
}

// From torchvision 0.14: sum of numel over parameters(), and len(state_dict()).
INSTANTIATE_TEST_SUITE_P(Depths, TorchvisionResNet,
                         testing::Values(KnownResNet{18, 11689512, 122}, KnownResNet{34, 21797672, 218},
                                         KnownResNet{50, 25557032, 320}, KnownResNet{101, 44549160, 626},
                                         KnownResNet{152, 60192808, 932}),
                         [](const auto& tested) { return "Depth" + std::to_string(tested.param.depth); });

TEST(ResNet, BottlenecksHaveTheirStrideOnTheMiddleConvolution) {
  const models::ResNet model(models::resnet_config(50));
  const auto state = shapes(model);
  EXPECT_EQ(state.at("layer2.0.conv1.weight"), (Shape{128, 256, 1, 1}));
  EXPECT_EQ(state.at("layer2.0.conv2.weight"), (Shape{128, 128, 3, 3}));
  EXPECT_EQ(state.at("layer2.0.conv3.weight"), (Shape{512, 128, 1, 1}));
  EXPECT_EQ(state.at("layer1.0.downsample.0.weight"), (Shape{256, 64, 1, 1}));
  EXPECT_EQ(state.at("layer2.0.downsample.0.weight"), (Shape{512, 256, 1, 1}));
  EXPECT_EQ(state.at("layer4.2.bn3.weight"), (Shape{2048}));
  EXPECT_FALSE(state.contains("layer2.1.downsample.0.weight"));
  const nn::Summary summary = summary_of(model, {1, 3, 224, 224});
  EXPECT_EQ(output_of(summary, "layer2.0.conv1"), (Shape{1, 128, 56, 56}));
  EXPECT_EQ(output_of(summary, "layer2.0.conv2"), (Shape{1, 128, 28, 28}));
}

// 6 n + 2 layers; the paper's table 6 gives 0.27, 0.46, 0.66, 0.85 and 1.7 million parameters.
TEST(ResNet, CifarFamilyHasThePapersSizes) {
  const std::map<int, double> millions{{20, 0.27}, {32, 0.46}, {44, 0.66}, {56, 0.85}, {110, 1.7}};
  for (const auto& [depth, expected] : millions) {
    const models::ResNet model(models::resnet_config(depth));
    EXPECT_NEAR(static_cast<double>(trainable_elements(model)) * 1e-6, expected, 0.03 * expected) << depth;
    int convolutions = 0;
    for (const auto& [name, shape] : shapes(model)) {
      if (shape.rank() == 4 && name.find("downsample") == std::string::npos) ++convolutions;
    }
    EXPECT_EQ(convolutions + 1, depth);
  }
}

// The identity-shortcut network has 269 722 parameters; two projections add 16*32 + 2*32 and 32*64 + 2*64.
TEST(ResNet, TwentyHasProjectionsWhereTheShapeChanges) {
  const models::ResNet model(models::resnet_config(20));
  const auto state = shapes(model);
  EXPECT_EQ(trainable_elements(model), 269722 + 576 + 2176);
  EXPECT_EQ(state.at("conv1.weight"), (Shape{16, 3, 3, 3}));
  EXPECT_EQ(state.at("layer2.0.downsample.0.weight"), (Shape{32, 16, 1, 1}));
  EXPECT_EQ(state.at("layer3.0.downsample.1.running_var"), (Shape{64}));
  EXPECT_EQ(state.at("fc.weight"), (Shape{10, 64}));
  EXPECT_FALSE(state.contains("layer1.0.downsample.0.weight"));
  EXPECT_FALSE(state.contains("layer4.0.conv1.weight"));
}

TEST(ResNet, CifarStemKeepsTheImagesSize) {
  models::ResNetConfig config = models::resnet_config(18, Stem::Cifar);
  config.classes = 10;
  const models::ResNet model(config);
  EXPECT_EQ(shapes(model).at("conv1.weight"), (Shape{64, 3, 3, 3}));
  const nn::Summary summary = summary_of(model, {2, 3, 32, 32});
  EXPECT_EQ(summary.rows.front().output.shape, (Shape{2, 64, 32, 32}));
  EXPECT_EQ(summary.rows.back().output.shape, (Shape{2, 10}));
  EXPECT_EQ(output_of(summary, "layer4.1.conv2"), (Shape{2, 512, 4, 4}));
}

TEST(ResNet, FiftyTakesEightGigaflopsAnImage) {  // 4.09 billion multiply-adds, as torchvision documents
  const models::ResNet model(models::resnet_config(50));
  const nn::Summary summary = summary_of(model, {2, 3, 224, 224});
  EXPECT_NEAR(summary.flops_per_sample(), 2 * 4.09e9, 0.02 * 2 * 4.09e9);
  EXPECT_EQ(summary.rows.back().output.shape, (Shape{2, 1000}));
}

double deviation(const models::Classifier& model, const std::string& name) {
  for (const NamedParameter& p : model.named_parameters()) {
    if (p.name != name) continue;
    std::vector<double> values(static_cast<std::size_t>(p.parameter->shape.elements()));
    RandomStream random(1, 2);
    p.parameter->initialize(p.parameter->shape, values, random);
    double squares = 0;
    for (const double v : values) squares += v * v;
    return std::sqrt(squares / static_cast<double>(values.size()));
  }
  ADD_FAILURE() << "no parameter " << name;
  return 0;
}

TEST(ResNet, InitialisesAsTorchvision) {
  const models::ResNet model(models::resnet_config(50));
  const double conv1 = std::sqrt(2.0 / (64 * 49)), conv2 = std::sqrt(2.0 / (128 * 9)), fc = 1 / std::sqrt(3 * 2048.0);
  EXPECT_NEAR(deviation(model, "conv1.weight"), conv1, 0.05 * conv1);  // sqrt(2 / fan out)
  EXPECT_NEAR(deviation(model, "layer2.0.conv2.weight"), conv2, 0.05 * conv2);
  EXPECT_NEAR(deviation(model, "fc.weight"), fc, 0.05 * fc);  // uniform within 1/sqrt(fan in)
  EXPECT_EQ(deviation(model, "layer1.0.bn3.weight"), 1);
  EXPECT_EQ(deviation(model, "layer1.0.bn3.bias"), 0);
}

TEST(ResNet, ZeroResidualIsForTheLastScaleOfEveryBlock) {
  models::ResNetConfig config = models::resnet_config(50);
  config.zero_residual = true;
  const models::ResNet model(config);
  EXPECT_EQ(deviation(model, "layer1.0.bn3.weight"), 0);
  EXPECT_EQ(deviation(model, "layer4.2.bn3.weight"), 0);
  EXPECT_EQ(deviation(model, "layer1.0.bn2.weight"), 1);
  EXPECT_EQ(deviation(model, "layer1.0.downsample.1.weight"), 1);
}

TEST(ResNet, RefusesWhatItCannotBuild) {
  try {
    models::resnet_config(19);
    FAIL() << "depth 19 was accepted";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("19"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("152"), std::string::npos);
  }
  // The family for small images has a stem of its own, and no other.
  EXPECT_EQ(models::resnet_config(20).stem, Stem::Cifar);
  EXPECT_EQ(models::resnet_config(20, Stem::Cifar).stem, Stem::Cifar);
  EXPECT_EQ(models::resnet_config(18).stem, Stem::ImageNet);
  EXPECT_EQ(models::resnet_config(18, Stem::Cifar).stem, Stem::Cifar);
  try {
    models::resnet_config(20, Stem::ImageNet);
    FAIL() << "the stem was accepted, and ignored";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("depth 20 is for small images"), std::string::npos) << e.what();
  }
  EXPECT_THROW(models::ResNet({.blocks = {}}), Error);
  EXPECT_THROW(models::ResNet({.classes = 0}), Error);
}

}  // namespace
}  // namespace lockstep

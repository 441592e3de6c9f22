// Normalisations as modules: names, shapes and initial values as PyTorch's, and the values that they take.
#include <gtest/gtest.h>

#include <limits>

#include "lockstep/core/error.h"
#include "lockstep/nn/norms.h"
#include "lockstep/ops/row_norm.h"

namespace lockstep::nn {
namespace {

template <class M>
std::vector<std::string> names_of(const M& module) {
  std::vector<std::string> names;
  for (const NamedParameter& p : module.named_parameters()) names.push_back(p.name + " " + p.parameter->shape.str());
  return names;
}

using Names = std::vector<std::string>;

TEST(Norms, NameParametersAsPyTorchDoes) {
  EXPECT_EQ(names_of(LayerNorm({.shape = {3, 4}})), (Names{"weight (3, 4)", "bias (3, 4)"}));
  EXPECT_EQ(names_of(LayerNorm({.shape = {5}, .bias = false})), Names{"weight (5)"});
  EXPECT_EQ(names_of(LayerNorm({.shape = {5}, .elementwise_affine = false})), Names{});
  EXPECT_EQ(names_of(RMSNorm({.shape = {5}})), Names{"weight (5)"});
  EXPECT_EQ(names_of(RMSNorm({.shape = {5}, .elementwise_affine = false})), Names{});
  EXPECT_EQ(names_of(GroupNorm({.groups = 2, .channels = 6})), (Names{"weight (6)", "bias (6)"}));
  EXPECT_EQ(names_of(GroupNorm({.groups = 2, .channels = 6, .affine = false})), Names{});
  EXPECT_EQ(names_of(InstanceNorm2d({.channels = 6})), Names{});
  EXPECT_EQ(names_of(InstanceNorm1d({.channels = 6, .affine = true})), (Names{"weight (6)", "bias (6)"}));
  const Names batch{"weight (4)", "bias (4)", "running_mean (4)", "running_var (4)", "num_batches_tracked ()"};
  EXPECT_EQ(names_of(BatchNorm1d({.channels = 4})), batch);
  EXPECT_EQ(names_of(BatchNorm3d({.channels = 4})), batch);
}

TEST(Norms, StartWithScalesOfOneAndShiftsOfZero) {
  const LayerNorm norm({.shape = {3}});
  for (const NamedParameter& p : norm.named_parameters()) {
    std::vector<double> values(3, 7);
    RandomStream random(1, 2);
    p.parameter->initialize(p.parameter->shape, values, random);
    EXPECT_EQ(values, std::vector<double>(3, p.name == "weight" ? 1 : 0));
    EXPECT_EQ(p.parameter->role, Role::Norm);
  }
}

TEST(Norms, RmsNormTakesTheEpsilonOfItsType) {
  const RMSNorm norm({.shape = {4}}), own({.shape = {4}, .epsilon = 0.5});
  const auto epsilon = [](const RMSNorm& module, DType dtype) {
    Graph graph(Mode::Train, dtype == DType::BF16 ? DType::F32 : dtype);
    const Value y = module(graph.input("x", {{2, 4}, dtype}));
    return dynamic_cast<const RowNormOp&>(*graph.node(y).op).options().epsilon;
  };
  EXPECT_EQ(epsilon(norm, DType::F32), static_cast<double>(std::numeric_limits<float>::epsilon()));
  EXPECT_EQ(epsilon(norm, DType::BF16), static_cast<double>(std::numeric_limits<float>::epsilon()));
  EXPECT_EQ(epsilon(norm, DType::F64), std::numeric_limits<double>::epsilon());
  EXPECT_EQ(epsilon(own, DType::F32), 0.5);
}

TEST(Norms, BatchNormsCountTheElementsOfASample) {
  Graph graph(Mode::Train, DType::F32);
  const BatchNorm1d one({.channels = 4});
  const BatchNorm3d three({.channels = 4, .momentum = 0.3});
  one(graph.input("vectors", {{8, 4}, DType::F32}));
  one(graph.input("sequences", {{8, 4, 5}, DType::F32}));
  three(graph.input("volumes", {{8, 4, 5, 3, 2}, DType::F32}));
  ASSERT_EQ(graph.statistics().size(), 3u);
  EXPECT_EQ(graph.statistics()[0].per_sample, 1);
  EXPECT_EQ(graph.statistics()[1].per_sample, 5);
  EXPECT_EQ(graph.statistics()[2].per_sample, 30);
  EXPECT_EQ(graph.statistics()[2].momentum, 0.3);
}

struct Parent : Module {
  Child<BatchNorm1d> bn1{this, "bn1", {.channels = 4}};
  Child<BatchNorm3d> bn3{this, "bn3", {.channels = 4}};
  Child<LayerNorm> ln{this, "ln", {.shape = {3, 4}}};
  Child<RMSNorm> rms{this, "rms", {.shape = {4}}};
  Child<GroupNorm> gn{this, "gn", {.groups = 2, .channels = 4}};
  Child<InstanceNorm2d> in{this, "in", {.channels = 4}};
};

template <class M>
std::string error_of(const M& module, Shape shape) {
  Graph graph(Mode::Train, DType::F32);
  try {
    module(graph.input("x", {std::move(shape), DType::F32}));
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Norms, RefuseOtherShapes) {
  const Parent p;
  EXPECT_EQ(error_of(p.bn1, {2, 4, 3, 3}),
            "[batch_norm] bn1: input is (2, 4, 3, 3), expected (samples, channels) or (samples, channels, length)");
  EXPECT_EQ(error_of(p.bn3, {2, 4, 3, 3}),
            "[batch_norm] bn3: input is (2, 4, 3, 3), expected (samples, channels, depth, height, width)");
  EXPECT_EQ(error_of(p.ln, {2, 4}), "[layer_norm] ln: input is (2, 4), expected the last dimensions (3, 4)");
  EXPECT_EQ(error_of(p.ln, {4}), "[layer_norm] ln: input is (4), expected the last dimensions (3, 4)");
  EXPECT_EQ(error_of(p.rms, {4, 3}), "[rms_norm] rms: input is (4, 3), expected the last dimensions (4)");
  EXPECT_EQ(error_of(p.gn, {2, 6, 3}), "[group_norm] gn: input is (2, 6, 3), expected (samples, 4, ...)");
  EXPECT_EQ(error_of(p.in, {2, 4, 3}),
            "[instance_norm] in: input is (2, 4, 3), expected (samples, channels, height, width)");
  EXPECT_EQ(error_of(p.in, {2, 5, 3, 3}), "[instance_norm] in: input is (2, 5, 3, 3), expected (samples, 4, ...)");
  EXPECT_EQ(error_of(p.bn1, {1, 4}).substr(0, 41), "[batch_norm2d] bn1: input is (1, 4), one ");
  EXPECT_THROW(GroupNorm({.groups = 4, .channels = 6}), Error);
  EXPECT_THROW(LayerNorm({.shape = {}}), Error);
}

}  // namespace
}  // namespace lockstep::nn

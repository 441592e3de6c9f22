// Names, shapes and initial values of modules: those of torchvision and PyTorch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/nn/layers.h"
#include "lockstep/nn/sequential.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/plan/compiled_model.h"

namespace lockstep::nn {
namespace {

struct Block : Module {
  Child<Conv2d> conv1{this, "conv1", {.in = 4, .out = 6, .kernel = 3, .stride = 2, .padding = 1, .bias = false}};
  Child<BatchNorm2d> bn1{this, "bn1", {.channels = 6}};
  Child<Sequential> downsample{this, "downsample"};
  Block() {
    downsample.append<Conv2d>(Conv2dConfig{.in = 4, .out = 6, .stride = 2, .bias = false})
        .append<BatchNorm2d>(BatchNorm2dConfig{.channels = 6});
  }
  Value operator()(Value x) const { return relu(bn1(conv1(x)) + downsample(x)); }
};

struct TwoLayers : Module {
  Child<Conv2d> stem{this, "stem", {.in = 3, .out = 4, .kernel = 3, .groups = 1}};
  Child<Sequential> layer1{this, "layer1"};
  Child<Linear> fc{this, "fc", {.in = 6, .out = 10}};
  TwoLayers() {
    layer1.append<Block>()
        .append([](Value x) { return relu(x); })
        .append<Conv2d>(Conv2dConfig{.in = 6, .out = 6, .kernel = 1, .groups = 3});
  }
};

TEST(Modules, NameParametersAsPyTorchDoes) {
  const TwoLayers model;
  std::vector<std::string> names;
  for (const NamedParameter& p : model.named_parameters()) names.push_back(p.name + " " + p.parameter->shape.str());
  EXPECT_EQ(names, (std::vector<std::string>{
                       "stem.weight (4, 3, 3, 3)",
                       "stem.bias (4)",
                       "layer1.0.conv1.weight (6, 4, 3, 3)",
                       "layer1.0.bn1.weight (6)",
                       "layer1.0.bn1.bias (6)",
                       "layer1.0.bn1.running_mean (6)",
                       "layer1.0.bn1.running_var (6)",
                       "layer1.0.bn1.num_batches_tracked ()",
                       "layer1.0.downsample.0.weight (6, 4, 1, 1)",
                       "layer1.0.downsample.1.weight (6)",
                       "layer1.0.downsample.1.bias (6)",
                       "layer1.0.downsample.1.running_mean (6)",
                       "layer1.0.downsample.1.running_var (6)",
                       "layer1.0.downsample.1.num_batches_tracked ()",
                       "layer1.2.weight (6, 2, 1, 1)",  // the function in front of it took number 1
                       "layer1.2.bias (6)",
                       "fc.weight (10, 6)",
                       "fc.bias (10)",
                   }));
  EXPECT_EQ(model.fc.path(), "fc");
  EXPECT_EQ(model.path(), "");
  EXPECT_EQ(model.layer1.size(), 3u);
}

TEST(Modules, KnowTheRolesOfTheirParameters) {
  const TwoLayers model;
  for (const NamedParameter& p : model.named_parameters()) {
    const auto ends = [&](const char* suffix) { return p.name.ends_with(suffix); };
    const bool norm = p.name.find("bn1") != std::string::npos || p.name.find("downsample.1") != std::string::npos;
    const Role role = ends("running_mean") || ends("running_var") || ends("num_batches_tracked") ? Role::Buffer
                      : norm                                                                     ? Role::Norm
                      : ends("bias")                                                             ? Role::Bias
                                                                                                 : Role::Weight;
    EXPECT_EQ(p.parameter->role, role) << p.name;
    EXPECT_EQ(p.parameter->trainable, role != Role::Buffer) << p.name;
    EXPECT_EQ(p.parameter->is_integer, ends("num_batches_tracked")) << p.name;
  }
}

TEST(Modules, RefuseNamesTwiceAndNamesWithDots) {
  struct Same : Module {
    Child<Linear> a{this, "fc", {.in = 1, .out = 1}}, b{this, "fc", {.in = 1, .out = 1}};
  };
  struct ParameterAndChild : Module {
    Child<Linear> a{this, "fc", {.in = 1, .out = 1}};
    Parameter& b = add("fc", {.shape = {1}});
  };
  struct ChildAndParameter : Module {
    Parameter& a = add("fc", {.shape = {1}});
    Child<Linear> b{this, "fc", {.in = 1, .out = 1}};
  };
  struct Dotted : Module {
    Child<Linear> a{this, "layer.fc", {.in = 1, .out = 1}};
  };
  struct Empty : Module {
    Child<Linear> a{this, "", {.in = 1, .out = 1}};
  };
  EXPECT_THROW(Same(), Error);
  EXPECT_THROW(ParameterAndChild(), Error);
  EXPECT_THROW(Dotted(), Error);
  EXPECT_THROW(Empty(), Error);
  EXPECT_THROW(ChildAndParameter(), Error);
}

// A child has one parent, from its construction to its end.
static_assert(!std::is_copy_constructible_v<Child<Linear>> && !std::is_move_constructible_v<Child<Linear>>);
static_assert(!std::is_copy_assignable_v<Child<Linear>> && !std::is_move_assignable_v<Child<Linear>>);

TEST(Children, AreInTheOrderOfTheirDeclaration) {
  struct Ordered : Module {
    Child<Linear> z{this, "z", {.in = 1, .out = 1, .bias = false}};
    Child<Sequential> empty{this, "empty"};
    Child<Linear> a{this, "a", {.in = 1, .out = 1, .bias = false}};
  } const model;
  const auto named = model.named_parameters();
  ASSERT_EQ(named.size(), 2u);
  EXPECT_EQ(named[0].name, "z.weight");
  EXPECT_EQ(named[1].name, "a.weight");
  EXPECT_EQ(model.z.path(), "z");
}

TEST(Children, LeaveTheirParentWhenTheyEndFirst) {
  struct Optional : Module {
    std::optional<Child<Linear>> head;
  } model;
  model.head.emplace(&model, "head", LinearConfig{.in = 1, .out = 1});
  EXPECT_EQ(model.named_parameters().size(), 2u);
  model.head.reset();
  EXPECT_TRUE(model.named_parameters().empty());
  model.head.emplace(&model, "head", LinearConfig{.in = 1, .out = 2, .bias = false});
  EXPECT_EQ(model.named_parameters().size(), 1u);
}

TEST(Children, MayOutliveTheirParent) {
  auto parent = std::make_unique<Module>();
  const Child<Linear> child(parent.get(), "child", {.in = 1, .out = 1});
  EXPECT_EQ(child.path(), "child");
  parent.reset();
  EXPECT_EQ(child.named_parameters().size(), 2u);
}

TEST(Children, TraceUnderTheirPathAndAfterwardsUnderThatBefore) {
  struct Twice : Module {
    Value operator()(const std::vector<Value>& x) { return x[0] + x[1]; }
  };
  struct Root : Module {
    Child<Linear> fc{this, "fc", {.in = 3, .out = 3}};
    Child<Sequential> layer{this, "layer"};
    Child<Twice> twice{this, "twice"};
    Root() {
      layer.append([](Value x) { return relu(x); }).append<Linear>(LinearConfig{.in = 3, .out = 3});
    }
  } root;
  Graph graph(Mode::Train, DType::F32);
  const auto place_of = [&](Value value) { return graph.node(value).path; };
  const Value x = graph.input("x", {{2, 3}, DType::F32});
  EXPECT_EQ(place_of(root.fc(x)), "fc");
  EXPECT_EQ(place_of(root.layer(x)), "layer.1");
  EXPECT_EQ(place_of(root.twice(std::vector<Value>{x, x})), "twice");
  EXPECT_EQ(place_of(relu(x)), "(model)");
  try {
    root.twice(std::vector<Value>{});
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[module] twice: called with no values, expected at least one");
  }
}

TEST(Modules, AreListedWithTheirPaths) {
  const TwoLayers model;
  std::set<std::string> owners;  // of parameters
  for (const NamedModule& m : model.named_modules()) {
    EXPECT_EQ(m.module->path(), m.path);
    for (const NamedParameter& p : m.module->named_parameters()) {
      if (p.name.find('.') == std::string::npos) owners.insert(m.path + "." + p.name);
    }
  }
  std::set<std::string> names;
  for (const NamedParameter& p : model.named_parameters()) names.insert(p.name);
  EXPECT_EQ(owners, names);
}

TEST(Modules, FreezeAllBelow) {
  TwoLayers model;
  model.layer1.set_trainable(false);
  for (const NamedParameter& p : model.named_parameters()) {
    EXPECT_EQ(p.parameter->trainable, p.parameter->role != Role::Buffer && !p.name.starts_with("layer1")) << p.name;
  }
  model.set_trainable(true);
  for (const NamedParameter& p : model.named_parameters())
    EXPECT_EQ(p.parameter->trainable, p.parameter->role != Role::Buffer) << p.name;
}

TEST(Modules, ShareTiedParameters) {
  struct Tied : Module {
    Child<Linear> encoder{this, "encoder", {.in = 3, .out = 3, .bias = false}};
    Tied() { tie("decoder_weight", encoder.weight()); }
  } const model;
  const auto named = model.named_parameters();
  ASSERT_EQ(named.size(), 2u);
  EXPECT_EQ(named[0].name, "decoder_weight");
  EXPECT_EQ(named[0].parameter, named[1].parameter);
}

// Empirical moments of many values against an initialiser's formula.
struct Moments {
  double mean, deviation, largest;
};
Moments moments_of(const Initializer& initialize, const Shape& shape) {
  std::vector<double> values(static_cast<std::size_t>(shape.elements()));
  RandomStream random(3, 4);
  initialize(shape, values, random);
  Moments m{0, 0, 0};
  const auto n = static_cast<double>(values.size());
  for (double v : values) m.mean += v / n;
  for (double v : values) m.deviation += (v - m.mean) * (v - m.mean) / n;
  m.deviation = std::sqrt(m.deviation);
  for (double v : values) m.largest = std::max(m.largest, std::abs(v));
  return m;
}

TEST(Init, VariancesAndBoundsAreThoseOfTheFormulas) {
  const Shape filter{64, 32, 3, 3};  // fan in 288, fan out 576; 18432 values: deviations within 2 %
  const auto expect_normal = [&](const Initializer& i, double deviation, const char* name) {
    const Moments m = moments_of(i, filter);
    EXPECT_NEAR(m.deviation, deviation, 0.02 * deviation) << name;
    EXPECT_NEAR(m.mean, 0, 0.03 * deviation) << name;
    EXPECT_GT(m.largest, 3 * deviation) << name;
  };
  const auto expect_uniform = [&](const Initializer& i, double bound, const char* name) {
    const Moments m = moments_of(i, filter);
    EXPECT_LE(m.largest, bound) << name;
    EXPECT_GT(m.largest, 0.99 * bound) << name;
    EXPECT_NEAR(m.deviation, bound / std::sqrt(3), 0.02 * bound) << name;
  };
  expect_normal(kaiming_normal(), std::sqrt(2.0 / 288), "kaiming_normal");
  expect_normal(kaiming_normal(Fan::Out), std::sqrt(2.0 / 576), "kaiming_normal out");
  expect_normal(kaiming_normal(Fan::In, 1), std::sqrt(1.0 / 288), "kaiming_normal slope 1");
  expect_uniform(kaiming_uniform(), std::sqrt(6.0 / 288), "kaiming_uniform");
  expect_normal(xavier_normal(), std::sqrt(2.0 / 864), "xavier_normal");
  expect_uniform(xavier_uniform(2), 2 * std::sqrt(6.0 / 864), "xavier_uniform");
  expect_uniform(torch_default(288), 1 / std::sqrt(288.0), "torch_default");
  expect_uniform(uniform(-0.25, 0.25), 0.25, "uniform");
  const Moments m = moments_of(normal(2, 0.5), filter);
  EXPECT_NEAR(m.mean, 2, 0.02);
  EXPECT_NEAR(m.deviation, 0.5, 0.01);
  const Moments c = moments_of(constant(1.5), filter);
  EXPECT_NEAR(c.mean, 1.5, 1e-9);
  EXPECT_EQ(c.largest, 1.5);
}

TEST(Init, LayersTakePyTorchsDefaults) {
  TwoLayers model;
  plan::CompiledModel compiled(model.named_parameters(),
                               [&](const plan::Inputs& in) { return plan::Traced{.prediction = model.stem(in["x"])}; });
  compiled.plan(Mode::Eval, {{"x", {{1, 3, 4, 4}, DType::F32}}});
  const auto largest = [&](const char* name) {
    const Tensor t = compiled.parameters().read(name);
    return std::abs(*std::ranges::max_element(t.data<float>(), {}, [](float v) { return std::abs(v); }));
  };
  EXPECT_LE(largest("stem.weight"), 1 / std::sqrt(27.0f));
  EXPECT_GT(largest("stem.weight"), 0.9 / std::sqrt(27.0));
  EXPECT_LE(largest("stem.bias"), 1 / std::sqrt(27.0f));
  EXPECT_LE(largest("layer1.2.weight"), 1 / std::sqrt(2.0f));  // two inputs per group
  EXPECT_LE(largest("fc.weight"), 1 / std::sqrt(6.0f));
  EXPECT_EQ(largest("layer1.0.bn1.weight"), 1);
  EXPECT_EQ(largest("layer1.0.bn1.bias"), 0);
  EXPECT_EQ(largest("layer1.0.bn1.running_mean"), 0);
  EXPECT_EQ(largest("layer1.0.bn1.running_var"), 1);
}

TEST(BatchNorm2d, UsesTheBatchInTrainingAndRunningStatisticsOtherwise) {
  BatchNorm2d bn({.channels = 2, .momentum = 0.3});
  const auto ops = [&](Mode mode) {
    Graph graph(mode, DType::F32);
    const Value y = bn(graph.input("x", {{3, 2, 4, 4}, DType::F32}));
    return std::pair(std::string(graph.node(y).op->name()), graph.statistics().size());
  };
  EXPECT_EQ(ops(Mode::Train), std::pair(std::string("batch_norm2d"), std::size_t{1}));
  EXPECT_EQ(ops(Mode::Eval), std::pair(std::string("batch_norm2d_inference"), std::size_t{0}));
  Graph graph(Mode::Train, DType::F32);
  bn(graph.input("x", {{3, 2, 4, 4}, DType::F32}));
  EXPECT_EQ(graph.statistics()[0].per_sample, 16);
  EXPECT_EQ(graph.statistics()[0].momentum, 0.3);
  bn.freeze_statistics(true);
  EXPECT_EQ(ops(Mode::Train), std::pair(std::string("batch_norm2d_inference"), std::size_t{0}));
}

TEST(BatchNorm2d, HandsOutTheSumsOfTheBatch) {
  BatchNorm2d bn({.channels = 2});
  plan::CompiledModel model(bn.named_parameters(), [&](const plan::Inputs& in) {
    const Value y = bn(in["x"]);
    return plan::Traced{.loss = mean(square(y))};
  });
  plan::Plan& plan = model.plan(Mode::Train, {{"x", {{3, 2, 1, 2}, DType::F32}}});
  auto* x = static_cast<float*>(plan.input("x"));
  double want[4] = {};
  for (int i = 0; i < 12; ++i) {
    x[i] = static_cast<float>(i * i % 7);
    want[i / 2 % 2] += x[i];
    want[2 + i / 2 % 2] += static_cast<double>(x[i]) * x[i];
  }
  plan.run();
  ASSERT_EQ(plan.statistics().size(), 1u);
  // Differences from a pivot are rounded to f32 before they are summed.
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(plan.statistic_sums(0)[i], want[i], 1e-6 * want[i]) << i;
}

}  // namespace
}  // namespace lockstep::nn

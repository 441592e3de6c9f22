// Whole plans with f32 convolutions from the registry: gradients against the f64 plan, parameters in their persistent
// form, and what a residual network's plan is made of.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "lockstep/core/random.h"
#include "lockstep/kernels/registry.h"
#include "lockstep/nn/layers.h"
#include "lockstep/ops/cross_entropy.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/pool.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/plan/compiled_model.h"
#include "tests/kernels/larger.h"

namespace lockstep {
namespace {

// Two convolutions with what usually lies between them; the widths make padded blocks.
class SmallNet : public nn::Module {
 public:
  SmallNet(std::int64_t width1, std::int64_t width2) : width1_(width1), width2_(width2) {}
  plan::Traced operator()(const plan::Inputs& in) const {
    const Value x = relu(conv2_(relu(bn1_(conv1_(in["image"])))));
    const Value logits = fc_(flatten(global_average_pool2d(x)));
    return {.loss = cross_entropy(logits, in["label"]), .prediction = logits};
  }

 private:
  std::int64_t width1_, width2_;
  nn::Child<nn::Conv2d> conv1_{this, "conv1", {.in = 3, .out = width1_, .kernel = 3, .padding = 1, .bias = false}};
  nn::Child<nn::BatchNorm2d> bn1_{this, "bn1", {.channels = width1_}};
  nn::Child<nn::Conv2d> conv2_{this, "conv2", {.in = width1_, .out = width2_, .kernel = 3, .stride = 2, .padding = 1}};
  nn::Child<nn::Linear> fc_{this, "fc", {.in = width2_, .out = 4}};
};

class Block : public nn::Module {
 public:
  Block(std::int64_t in, std::int64_t out, std::int64_t stride) : in_(in), out_(out), stride_(stride) {
    if (in == out) return;
    shortcut_.emplace(this, "shortcut", nn::Conv2dConfig{.in = in, .out = out, .stride = stride, .bias = false});
    shortcut_bn_.emplace(this, "shortcut_bn", nn::BatchNorm2dConfig{.channels = out});
  }
  Value operator()(Value x) const {
    const Value y = bn2_(conv2_(relu(bn1_(conv1_(x)))));
    return relu(y + (shortcut_ ? (*shortcut_bn_)((*shortcut_)(x)) : x));
  }

 private:
  std::int64_t in_, out_, stride_;
  nn::Child<nn::Conv2d> conv1_{
      this, "conv1", {.in = in_, .out = out_, .kernel = 3, .stride = stride_, .padding = 1, .bias = false}};
  nn::Child<nn::BatchNorm2d> bn1_{this, "bn1", {.channels = out_}};
  nn::Child<nn::Conv2d> conv2_{this, "conv2", {.in = out_, .out = out_, .kernel = 3, .padding = 1, .bias = false}};
  nn::Child<nn::BatchNorm2d> bn2_{this, "bn2", {.channels = out_}};
  std::optional<nn::Child<nn::Conv2d>> shortcut_;
  std::optional<nn::Child<nn::BatchNorm2d>> shortcut_bn_;
};

// ResNet-20's shapes (He et al. 2015, section 4.2) with one block per stage.
class ResidualNet : public nn::Module {
 public:
  plan::Traced operator()(const plan::Inputs& in) const {
    const Value x = stage3_(stage2_(stage1_(relu(bn_(conv_(in["image"]))))));
    return {.loss = cross_entropy(fc_(flatten(global_average_pool2d(x))), in["label"])};
  }

 private:
  nn::Child<nn::Conv2d> conv_{this, "conv", {.in = 3, .out = 16, .kernel = 3, .padding = 1, .bias = false}};
  nn::Child<nn::BatchNorm2d> bn_{this, "bn", {.channels = 16}};
  nn::Child<Block> stage1_{this, "stage1", 16, 16, 1};
  nn::Child<Block> stage2_{this, "stage2", 16, 32, 2};
  nn::Child<Block> stage3_{this, "stage3", 32, 64, 2};
  nn::Child<nn::Linear> fc_{this, "fc", {.in = 64, .out = 10}};
};

std::map<std::string, Type> batch_of(const Shape& images, DType dtype) {
  return {{"image", {images, dtype}}, {"label", {Shape{images[0]}, DType::I32}}};
}

// Fills the batch alike for both precisions.
void fill_inputs(plan::Plan& plan) {
  const Type type = *plan.input_type("image");
  RandomStream random(11, 0);
  for (std::int64_t i = 0; i < type.shape.elements(); ++i) {
    const auto v = static_cast<float>(random.normal());
    if (type.dtype == DType::F64) {
      static_cast<double*>(plan.input("image"))[i] = v;
    } else {
      static_cast<float*>(plan.input("image"))[i] = v;
    }
  }
  auto* label = static_cast<std::int32_t*>(plan.input("label"));
  for (std::int64_t i = 0; i < plan.batch(); ++i) label[i] = static_cast<std::int32_t>(i % 4);
}

// The same model in f32, on whatever the registry prefers, and in f64 on the generic kernels.
struct Pair {
  explicit Pair(const SmallNet& net, const Shape& images)
      : single(net.named_parameters(), [&net](const plan::Inputs& in) { return net(in); },
               {.dtype = DType::F32, .seed = 3}),
        reference(net.named_parameters(), [&net](const plan::Inputs& in) { return net(in); },
                  {.dtype = DType::F64, .seed = 3}),
        single_plan(single.plan(Mode::Train, batch_of(images, DType::F32))),
        reference_plan(reference.plan(Mode::Train, batch_of(images, DType::F64))) {}

  void run() {
    fill_inputs(single_plan);
    fill_inputs(reference_plan);
    single_plan.run();
    reference_plan.run();
  }

  // A few thousand f32 roundings, averaged: 1e-5 of the largest gradient of a parameter, with room for cancellation
  // behind batch norm.
  void expect_same_gradients(const SmallNet& net) {
    EXPECT_NEAR(single_plan.loss(), reference_plan.loss(), 1e-5 * std::abs(reference_plan.loss()));
    for (const NamedParameter& p : net.named_parameters()) {
      if (p.parameter->role == Role::Buffer) continue;
      const Tensor a = single.parameters().read_gradient(p.name).to(DType::F64),
                   b = reference.parameters().read_gradient(p.name);
      double largest = 0, error = 0;
      for (std::size_t i = 0; i < b.data<double>().size(); ++i) {
        largest = std::max(largest, std::abs(b.data<double>()[i]));
        error = larger(error, std::abs(a.data<double>()[i] - b.data<double>()[i]));
      }
      EXPECT_GT(largest, 0) << p.name;
      EXPECT_LE(error, 1e-4 * largest) << p.name;
    }
  }

  plan::CompiledModel single, reference;
  plan::Plan &single_plan, &reference_plan;
};

const plan::PlanStep& find_step(const plan::Plan& plan, std::string_view place, std::string_view op) {
  const auto found = std::ranges::find_if(
      plan.steps(), [&](const plan::PlanStep& s) { return s.path == place && s.op->name() == op; });
  check(found != plan.steps().end(), "test", "no step {} {} in\n{}", place, op, plan.describe());
  return *found;
}

TEST(OneDnnPlan, GradientsAgreeWithTheF64Plan) {
  for (const auto& [width1, width2] : {std::pair{16, 32}, {20, 17}, {6, 5}}) {
    SCOPED_TRACE(formatted("widths {} {}", width1, width2));
    const SmallNet net(width1, width2);
    Pair pair(net, {6, 3, 9, 11});
    pair.run();
    pair.expect_same_gradients(net);
  }
}

TEST(OneDnnPlan, ParametersAreReadInLogicalOrder) {
  const SmallNet net(20, 17);
  Pair pair(net, {2, 3, 8, 8});
  for (const NamedParameter& p : net.named_parameters()) {
    if (p.parameter->is_integer) continue;
    const Tensor a = pair.single.parameters().read(p.name), b = pair.reference.parameters().read(p.name).to(DType::F32);
    for (std::size_t i = 0; i < a.data<float>().size(); ++i)
      ASSERT_EQ(a.data<float>()[i], b.data<float>()[i]) << p.name << " at " << i;
  }
}

TEST(OneDnnPlan, TheWeightPersistsAsItsGradientIsMade) {
  if (!kernels::has_onednn()) GTEST_SKIP() << "built without oneDNN";
  const SmallNet net(16, 32);
  Pair pair(net, {2, 3, 8, 8});
  const plan::ParameterStore& store = pair.single.parameters();
  const Layout& form = store.layout(store.find("conv2.weight"));
  EXPECT_FALSE(form.plain());
  EXPECT_EQ(find_step(pair.single_plan, "conv2", "conv2d").offer.inputs[1], form);
  const plan::PlanStep& gradient = find_step(pair.single_plan, "grad conv2", "conv2d_backward_weights");
  EXPECT_EQ(gradient.offer.outputs[0], form);
  EXPECT_EQ(gradient.sinks.size(), 2u) << "weight and bias are written straight into their slots";
}

// Other weights: forward reads the persistent form, backward data its derived copy, and both must see them.
TEST(OneDnnPlan, NewWeightsReachEveryDirection) {
  const SmallNet net(20, 17);
  Pair pair(net, {4, 3, 8, 8});
  pair.run();
  const double before = pair.single_plan.loss();
  Tensor weight = pair.reference.parameters().read("conv2.weight");
  for (double& v : weight.data<double>()) v = 1 - 3 * v;
  for (plan::CompiledModel* model : {&pair.single, &pair.reference}) {
    model->parameters().write("conv2.weight", weight);
    model->parameters().refresh();
  }
  pair.run();
  EXPECT_GT(std::abs(pair.single_plan.loss() - before), 1e-3);
  pair.expect_same_gradients(net);
}

// A plan of another batch over the same parameters.
TEST(OneDnnPlan, AShortBatchAndEvaluationShareTheParameters) {
  const SmallNet net(16, 32);
  Pair pair(net, {6, 3, 8, 8});
  for (const std::int64_t batch : {1, 0}) {
    plan::Plan& plan = pair.single.plan(Mode::Train, batch_of({batch, 3, 8, 8}, DType::F32));
    if (batch > 0) fill_inputs(plan);
    plan.run();
    EXPECT_EQ(plan.weight(), static_cast<double>(batch));
  }
  plan::Plan& single = pair.single.plan(Mode::Eval, batch_of({5, 3, 8, 8}, DType::F32));
  plan::Plan& reference = pair.reference.plan(Mode::Eval, batch_of({5, 3, 8, 8}, DType::F64));
  fill_inputs(single);
  fill_inputs(reference);
  single.run();
  reference.run();
  EXPECT_NEAR(single.loss(), reference.loss(), 1e-5 * std::abs(reference.loss()));
}

TEST(OneDnnPlan, AResidualNetworkStaysBlockedFromEndToEnd) {
  if (!kernels::has_onednn()) GTEST_SKIP() << "built without oneDNN";
  const ResidualNet net;
  plan::CompiledModel model(net.named_parameters(), [&net](const plan::Inputs& in) { return net(in); },
                            {.dtype = DType::F32, .seed = 1});
  const plan::Plan& plan = model.plan(Mode::Train, batch_of({32, 3, 32, 32}, DType::F32));
  int reorders = 0;
  for (const plan::PlanStep& step : plan.steps()) {
    EXPECT_EQ(step.offer.implementation.find("ref"), std::string::npos)
        << step.path << ": " << step.offer.implementation;
    if (step.op->name().starts_with("conv2d")) {
      EXPECT_NE(step.offer.implementation, "generic") << step.path;
    }
    reorders += step.op->name() == "reorder" ? 1 : 0;
  }
  // The values between convolutions stay as they are; at the end, average pooling works on plain values.
  EXPECT_LE(reorders, 2) << plan.describe();
}

}  // namespace
}  // namespace lockstep

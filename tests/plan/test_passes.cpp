// The values that the passes over a graph must leave as they were: losses, gradients and predictions, with and without
// fusion, at every level of recomputation, and in bf16 within its precision.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "lockstep/metrics/metrics.h"
#include "lockstep/nn/layers.h"
#include "lockstep/ops/cross_entropy.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/pool.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"
#include "tests/plan/support.h"

namespace lockstep::passes {
namespace {

constexpr std::int64_t kBatch = 3;

// f32 has whole blocks of channels, for which every set has kernels; f64 the sizes that fill none.
struct Channels {
  explicit Channels(DType dtype) : narrow(dtype == DType::F64 ? 6 : 16), wide(dtype == DType::F64 ? 17 : 32) {}
  std::int64_t narrow, wide;
};

// A residual block whose shortcut is x, or a normalised projection; the latter with dropout inside.
class Residual : public nn::Module {
 public:
  Residual(std::int64_t in, std::int64_t out) : in_(in), out_(out) {
    if (in == out) return;
    project_.emplace(this, "project", nn::Conv2dConfig{.in = in, .out = out, .kernel = 1});
    bn3_.emplace(this, "bn3", nn::BatchNorm2dConfig{.channels = out});
  }
  Value operator()(Value x) const {
    const auto in_block = block(x);
    const Value y = bn2_(conv2_(drop_(relu(bn1_(conv1_(x))))));
    return relu((project_ ? (*bn3_)((*project_)(x)) : x) + y);  // the sum's operands either way round
  }

 private:
  std::int64_t in_, out_;
  nn::Child<nn::Conv2d> conv1_{this, "conv1", {.in = in_, .out = out_, .kernel = 3, .padding = 1, .bias = false}};
  nn::Child<nn::BatchNorm2d> bn1_{this, "bn1", {.channels = out_}};
  nn::Child<nn::Dropout> drop_{this, "drop", in_ == out_ ? 0 : 0.25};
  nn::Child<nn::Conv2d> conv2_{this, "conv2", {.in = out_, .out = out_, .kernel = 3, .padding = 1, .bias = false}};
  nn::Child<nn::BatchNorm2d> bn2_{this, "bn2", {.channels = out_}};
  std::optional<nn::Child<nn::Conv2d>> project_;
  std::optional<nn::Child<nn::BatchNorm2d>> bn3_;
};

class Network : public nn::Module {
 public:
  explicit Network(Channels channels) : c_(channels) { frozen_.freeze_statistics(true); }
  plan::Traced operator()(const plan::Inputs& in) const {
    Value x = second_(first_(relu(conv_(in["image"]))));
    x = relu(frozen_(x));
    const Value logits = out_(relu(hidden_(flatten(global_average_pool2d(x)))));
    return {.loss = cross_entropy(logits, in["label"]),
            .metrics = {metrics::accuracy(logits, in["label"])},
            .prediction = logits};
  }

 private:
  Channels c_;
  nn::Child<nn::Conv2d> conv_{this, "conv", {.in = 3, .out = c_.narrow, .kernel = 3, .padding = 1}};
  nn::Child<Residual> first_{this, "first", c_.narrow, c_.narrow};
  nn::Child<Residual> second_{this, "second", c_.narrow, c_.wide};
  nn::Child<nn::BatchNorm2d> frozen_{this, "frozen", {.channels = c_.wide}};
  nn::Child<nn::Linear> hidden_{this, "hidden", {.in = c_.wide, .out = 9}};
  nn::Child<nn::Linear> out_{this, "out", {.in = 9, .out = 4}};
};

std::map<std::string, Type> batch_types(DType dtype) {
  return {{"image", {{kBatch, 3, 6, 5}, dtype}}, {"label", {Shape{kBatch}, DType::I32}}};
}

void fill_batch(plan::Plan& plan) {
  plan.input_type("image")->dtype == DType::F64 ? fill_input<double>(plan, "image") : fill_input<float>(plan, "image");
  for (std::int64_t i = 0; i < kBatch; ++i) static_cast<std::int32_t*>(plan.input("label"))[i] = static_cast<int>(i);
  if (void* step = plan.input(Graph::kStep)) *static_cast<std::int64_t*>(step) = 7;
  if (void* ids = plan.input(Graph::kSampleIds))
    std::iota(static_cast<std::int64_t*>(ids), static_cast<std::int64_t*>(ids) + kBatch, 100);
}

struct Outcome {
  double loss = 0;
  std::vector<double> gradients, sums, evaluated;
  std::size_t arena = 0;
};

Outcome outcome(DType dtype, plan::CompileOptions options) {
  const Network network{Channels(dtype)};
  plan::CompiledModel model(
      network.named_parameters(), [&](const plan::Inputs& in) { return network(in); }, {.dtype = dtype, .seed = 3},
      std::move(options));
  plan::Plan& plan = model.plan(Mode::Train, batch_types(dtype));
  fill_batch(plan);
  plan.run();
  Outcome o{.loss = plan.loss(), .arena = plan.arena_bytes()};
  const auto append = [](std::vector<double>& to, std::span<const double> values) {
    to.insert(to.end(), values.begin(), values.end());
  };
  for (const NamedParameter& p : model.parameters().parameters()) {
    if (model.parameters().has_gradient(p.parameter))
      append(o.gradients, values_of(model.parameters().read_gradient(p.name)));
  }
  for (std::size_t s = 0; s < plan.statistics().size(); ++s) {
    const auto n = static_cast<std::size_t>(2 * plan.statistics()[s].mean->shape.elements());
    append(o.sums, {plan.statistic_sums(s), n});
  }
  plan::Plan& eval = model.plan(Mode::Eval, batch_types(dtype));
  fill_batch(eval);
  eval.run();
  o.evaluated = values_of(eval.prediction());
  return o;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  double scale = 0;
  for (const double v : want) scale = std::max(scale, std::abs(v));
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], tolerance * scale) << i;
}

TEST(Passes, FusionChangesNoValue) {
  const Outcome fused = outcome(DType::F64, {}),
                plain = outcome(DType::F64, {.fuse = false, .recompute = plan::Recompute::None});
  EXPECT_NEAR(fused.loss, plain.loss, 1e-13);
  expect_near(fused.gradients, plain.gradients, 1e-12);
  expect_near(fused.sums, plain.sums, 1e-13);
  expect_near(fused.evaluated, plain.evaluated, 1e-12);
}

// f32 rounds to 6e-8; sums of some hundred terms, in another order or by Winograd's transforms, through ten layers.
constexpr double kF32 = 1e-4;
constexpr const char* kPreferred[] = {"", "onednn", "generic"};

TEST(Passes, FusionChangesF32ByRoundingOnly) {
  for (const char* prefer : kPreferred) {
    SCOPED_TRACE(prefer);
    const Outcome fused = outcome(DType::F32, {.kernels = {.prefer = prefer}}),
                  plain = outcome(DType::F32,
                                  {.fuse = false, .recompute = plan::Recompute::None, .kernels = {.prefer = prefer}});
    EXPECT_NEAR(fused.loss, plain.loss, kF32 * plain.loss);
    expect_near(fused.gradients, plain.gradients, kF32);
    expect_near(fused.sums, plain.sums, kF32);
    expect_near(fused.evaluated, plain.evaluated, kF32);
  }
}

TEST(Passes, RecomputationChangesNoBit) {
  for (const DType dtype : {DType::F32, DType::F64}) {
    const Outcome none = outcome(dtype, {.recompute = plan::Recompute::None});
    for (const plan::Recompute what : {plan::Recompute::Norms, plan::Recompute::Blocks}) {
      const Outcome again = outcome(dtype, {.recompute = what});
      EXPECT_EQ(again.loss, none.loss);
      EXPECT_EQ(again.gradients, none.gradients);
      EXPECT_EQ(again.sums, none.sums);
    }
  }
}

TEST(Passes, RecomputationSavesMemory) {
  const auto arena = [](plan::Recompute what) { return outcome(DType::F64, {.recompute = what}).arena; };
  EXPECT_LT(arena(plan::Recompute::Norms), arena(plan::Recompute::None));
  EXPECT_LT(arena(plan::Recompute::Blocks), arena(plan::Recompute::Norms));
}

// bf16 keeps 8 bits, so every stored value is off by up to 2^-9 of itself, a result of twenty independent ones by about
// 1%; batch norm over few samples, and ReLUs that flip, amplify that several times.
TEST(Passes, Bf16StaysNearF32) {
  const Outcome full = outcome(DType::F32, {}), half = outcome(DType::F32, {.bf16 = true});
  EXPECT_NEAR(half.loss, full.loss, 0.02 * full.loss);
  EXPECT_NE(half.loss, full.loss);
  EXPECT_LT(distance(half.gradients, full.gradients), 0.1);
  EXPECT_LT(distance(half.evaluated, full.evaluated), 0.02);
}

// Without other ranks, what is cut where it sums over ranks is what it is cut from.
class Alone : public Collective {
 public:
  void allreduce_sum(std::span<double>) override {}
};

TEST(Passes, SynchronisedBatchNormAloneIsBatchNorm) {
  const Synchronisation sync{.collective = std::make_shared<Alone>(), .all_norms = true};
  const auto expect_same = [&](DType dtype, plan::CompileOptions options, double tolerance) {
    const Outcome plain = outcome(dtype, options);
    options.synchronisation = sync;
    const Outcome cut = outcome(dtype, options);
    EXPECT_NEAR(cut.loss, plain.loss, tolerance * plain.loss);
    expect_near(cut.gradients, plain.gradients, tolerance);
    expect_near(cut.sums, plain.sums, tolerance);
  };
  for (const plan::Recompute what : {plan::Recompute::None, plan::Recompute::Norms, plan::Recompute::Blocks}) {
    expect_same(DType::F64, {.recompute = what}, 1e-12);
    expect_same(DType::F32, {.recompute = what}, kF32);
  }
  expect_same(DType::F64, {.fuse = false}, 1e-12);
  for (const char* prefer : kPreferred) expect_same(DType::F32, {.kernels = {.prefer = prefer}}, kF32);
  expect_same(DType::F32, {.bf16 = true}, 0.02);
}

TEST(Passes, Bf16NeedsF32Parameters) {
  const Network network{Channels(DType::F64)};
  expect_error(
      [&] {
        plan::CompiledModel(network.named_parameters(), [&](const plan::Inputs& in) { return network(in); },
                            {.dtype = DType::F64}, {.bf16 = true});
      },
      "bf16 needs f32 parameters, these are f64");
}

class PlanOf {
 public:
  explicit PlanOf(Mode mode, plan::CompileOptions options = {}, DType dtype = DType::F64)
      : network_(Channels(dtype)),
        model_(
            network_.named_parameters(), [this](const plan::Inputs& in) { return network_(in); }, {.dtype = dtype},
            std::move(options)),
        plan_(model_.plan(mode, batch_types(dtype))) {}
  // Steps by op and attributes: "pointwise relu".
  std::int64_t count(std::string_view name, std::string_view attributes = "") const {
    return std::ranges::count_if(plan_.steps(), [&](const plan::PlanStep& s) {
      return s.op->name() == name && s.op->attributes().find(attributes) != std::string::npos;
    });
  }
  plan::Plan& plan() { return plan_; }
  plan::ParameterStore& store() { return model_.parameters(); }

 private:
  Network network_;
  plan::CompiledModel model_;
  plan::Plan& plan_;
};

TEST(Passes, EveryReluJoinsWhatIsBeforeIt) {
  const PlanOf plan(Mode::Train);
  EXPECT_EQ(plan.count("pointwise", "relu"), 0);
  EXPECT_EQ(plan.count("batch_norm2d", "+ residual + relu"), 2);
  EXPECT_EQ(plan.count("conv2d", "+ relu"), 1);
  EXPECT_EQ(plan.count("linear", "+ relu"), 1);
  EXPECT_EQ(plan.count("batch_norm2d_inference", "+ relu"), 1) << "the frozen one";
  EXPECT_EQ(plan.count("batch_norm2d_normalise", "+ residual + relu"), 2) << "each a pass away from what is kept";
}

TEST(Passes, BatchNormAddsTheGradientsOfABlocksBranches) {
  const PlanOf fused(Mode::Train), plain(Mode::Train, {.fuse = false});
  EXPECT_EQ(fused.count("batch_norm2d_gradient", "of a sum"), 1) << "the first block's, which the second branches from";
  EXPECT_EQ(plain.count("batch_norm2d_gradient", "of a sum"), 0);
  EXPECT_EQ(fused.count("pointwise", "add"), 1) << "the gradients of the first block's input";
}

TEST(Passes, SynchronisedBatchNormFusesLikewiseAndNeverSumsAgain) {
  const Synchronisation sync{.collective = std::make_shared<Alone>(), .all_norms = true};
  for (const plan::Recompute what : {plan::Recompute::None, plan::Recompute::Norms, plan::Recompute::Blocks}) {
    const PlanOf plan(Mode::Train, {.recompute = what, .synchronisation = sync});
    EXPECT_EQ(plan.count("pointwise", "relu"), 0);
    EXPECT_EQ(plan.count("batch_norm2d_sync", "+ residual + relu"), 2);
    EXPECT_EQ(plan.count("batch_norm2d_gradient_sums", "of a sum"), 1);
    EXPECT_EQ(plan.count("all_reduce_sum"), 2 * 5) << "forward and backward of each";
  }
  EXPECT_EQ(PlanOf(Mode::Eval, {.synchronisation = sync}).count("all_reduce_sum"), 0);
}

TEST(Passes, InferenceHasNoBatchNormAfterAConvolution) {
  PlanOf plan(Mode::Eval);
  EXPECT_EQ(plan.count("batch_norm2d_inference"), 1) << "the frozen one follows a block's sum";
  EXPECT_EQ(plan.count("fold_batch_norm"), 5);
  EXPECT_EQ(plan.count("conv2d", "+ residual + relu"), 2);
  for (const plan::PlanStep& s : plan.plan().steps())
    EXPECT_EQ(s.constant, s.op->name() == "fold_batch_norm") << s.path;
}

void expect_folded_weights_follow(DType dtype, const kernels::KernelOptions& kernels, double tolerance) {
  PlanOf folded(Mode::Eval, {.kernels = kernels}, dtype), plain(Mode::Eval, {.fuse = false, .kernels = kernels}, dtype);
  const auto prediction = [](PlanOf& p) {
    fill_batch(p.plan());
    p.plan().run();
    return values_of(p.plan().prediction());
  };
  const std::vector<double> before = prediction(folded);
  for (PlanOf* p : {&folded, &plain}) {
    for (const char* name : {"first.bn1.running_var", "first.conv2.weight", "second.bn3.weight"}) {
      Tensor t = p->store().read(name).to(DType::F64);
      for (double& v : t.data<double>()) v = 1.5 * v + 0.1;
      p->store().write(name, t);
    }
    p->store().refresh();
  }
  const std::vector<double> after = prediction(folded);
  EXPECT_GT(distance(after, before), 1e-2);
  expect_near(after, prediction(plain), tolerance);
}

TEST(Passes, FoldedWeightsFollowTheParameters) {
  expect_folded_weights_follow(DType::F64, {}, 1e-12);
  for (const char* prefer : kPreferred) {
    SCOPED_TRACE(prefer);
    expect_folded_weights_follow(DType::F32, {.prefer = prefer}, kF32);
  }
}

// The convolution's input is added to its result, so the sum must not be written over it.
struct Shortcut : nn::Module {
  std::optional<nn::Child<nn::Conv2d>> stem;
  nn::Child<nn::Conv2d> conv;
  nn::Child<nn::BatchNorm2d> bn{this, "bn", {.channels = 16}};
  Shortcut(std::int64_t kernel, bool has_stem)
      : conv(this, "conv", {.in = 16, .out = 16, .kernel = kernel, .padding = kernel / 2}) {
    if (has_stem) stem.emplace(this, "stem", nn::Conv2dConfig{.in = 16, .out = 16});
  }
};

std::vector<double> shortcut(std::int64_t kernel, bool has_stem, plan::CompileOptions options) {
  const Shortcut net(kernel, has_stem);
  const auto function = [&](const plan::Inputs& in) {
    const Value x = has_stem ? (*net.stem)(in["image"]) : in["image"];
    return plan::Traced{.prediction =
                            square(relu(net.bn(net.conv(x)) + x))};  // squared: what is kept has its own memory
  };
  plan::CompiledModel model(net.named_parameters(), function, {.seed = 4}, std::move(options));
  plan::Plan& plan = model.plan(Mode::Eval, {{"image", {{2, 16, 9, 8}, DType::F32}}});
  fill_input<float>(plan, "image");
  plan.run();
  return values_of(plan.prediction());
}

TEST(Passes, AResidualThatIsTheConvolutionsInputStaysWhole) {
  for (const char* prefer : kPreferred) {
    for (const std::int64_t kernel : {1, 3}) {
      for (const bool has_stem : {false, true}) {
        SCOPED_TRACE(formatted("prefer '{}', kernel {}, stem {}", prefer, kernel, has_stem));
        expect_near(shortcut(kernel, has_stem, {.kernels = {.prefer = prefer}}),
                    shortcut(kernel, has_stem, {.fuse = false, .kernels = {.prefer = prefer}}), kF32);
      }
    }
  }
}

TEST(Passes, WhatIsReadTwiceOrObservedStaysAValue) {
  nn::BatchNorm2d bn({.channels = 2});
  const auto relus = [&](auto trace) {
    plan::CompiledModel model(bn.named_parameters(),
                              [&](const plan::Inputs& in) { return plan::Traced{.loss = trace(in["x"])}; },
                              {.dtype = DType::F64});
    const plan::Plan& plan = model.plan(Mode::Train, {{"x", {{2, 2, 3, 3}, DType::F64}}});
    return std::ranges::count_if(plan.steps(), [](const plan::PlanStep& s) { return s.op->attributes() == "relu"; });
  };
  const auto total = [](Value v) { return mean(square(v)); };
  EXPECT_EQ(relus([&](Value x) { return total(relu(bn(x))); }), 0);
  EXPECT_GT(relus([&](Value x) { return total(relu(observe("normed", bn(x)))); }), 0);
  EXPECT_GT(relus([&](Value x) {
              const Value y = bn(x);
              return total(relu(y) + y);
            }),
            0);
}

}  // namespace
}  // namespace lockstep::passes

// The promises of losses beside their values, which tests/ops checks: parts of a batch combine to the whole by their
// weights, what weighs nothing may be anything, and errors name the loss.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "lockstep/core/partition.h"
#include "lockstep/losses/classification.h"
#include "lockstep/losses/regression.h"
#include "lockstep/ops/cross_entropy.h"
#include "lockstep/ops/gradient.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "tests/plan/support.h"

namespace lockstep {
namespace {

constexpr std::int64_t kSamples = 6;
const Shape kSample{3, 4};  // channels, positions

// Fields of samples. Sample 1 weighs nothing and sample 2 is masked out; 12 elements of others are masked too.
struct Data {
  std::vector<double> x, target, weight, mask, position_mask, sign;
  std::vector<std::int32_t> label;

  Data() {
    RandomStream random(3, 4);
    for (std::int64_t i = 0; i < kSamples * kSample.elements(); ++i) {
      x.push_back(random.normal());
      target.push_back(random.uniform(0.05, 0.95));
      mask.push_back(i / kSample.elements() == 2 || i % 5 == 3 ? 0 : 1);
    }
    for (std::int64_t n = 0; n < kSamples; ++n) {
      weight.push_back(n == 1 ? 0 : random.uniform(0.2, 2));
      sign.push_back(n % 2 == 0 ? 1 : -1);
      for (std::int32_t s = 0; s < 4; ++s) {
        position_mask.push_back(n == 2 || s == n % 4 ? 0 : 1);
        label.push_back(s == 3 ? -100 : static_cast<std::int32_t>(n + s) % 3);
      }
    }
  }
};

using LossOf = std::function<Loss(const plan::Inputs& in, Value prediction)>;

struct Outcome {
  double mean = 0, weight = 0;
  std::vector<double> gradient;  // of the sum over samples
};

// The prediction is a parameter (channels, positions) times the field x.
Outcome run(const Data& data, const LossOf& loss, std::int64_t begin, std::int64_t end) {
  Parameters parameters;
  const Parameter& a = parameters.add("a", kSample);
  const auto function = [&](const plan::Inputs& in) {
    return plan::Traced{.loss = loss(in, in.graph().parameter(a) * in["x"])};
  };
  plan::CompiledModel model(parameters.named(), function, {.dtype = DType::F64, .seed = 11});
  const std::int64_t n = end - begin;
  const Type whole{kSample.batched(n), DType::F64};
  plan::Plan& plan = model.plan(Mode::Train, {{"x", whole},
                                              {"target", whole},
                                              {"mask", whole},
                                              {"weight", {Shape{n}, DType::F64}},
                                              {"sign", {Shape{n}, DType::F64}},
                                              {"position_mask", {Shape{n, 4}, DType::F64}},
                                              {"label", {Shape{n, 4}, DType::I32}}});
  const auto fill = [&]<class T>(const char* name, const std::vector<T>& values) {
    const std::size_t per_sample = values.size() / kSamples;
    if (void* to = plan.input(name))
      std::memcpy(to, &values[static_cast<std::size_t>(begin) * per_sample],
                  static_cast<std::size_t>(n) * per_sample * sizeof(T));
  };
  fill("x", data.x);
  fill("target", data.target);
  fill("mask", data.mask);
  fill("weight", data.weight);
  fill("sign", data.sign);
  fill("position_mask", data.position_mask);
  fill("label", data.label);
  plan.run();
  return {plan.loss(), plan.weight(), values_of(model.parameters().read_gradient("a"))};
}

LossWeights both(const plan::Inputs& in) { return {.sample = in["weight"], .mask = in["mask"]}; }
LossWeights of_positions(const plan::Inputs& in) { return {.sample = in["weight"], .mask = in["position_mask"]}; }

struct Named {
  const char* name;
  LossOf weighted, plain;
};

const std::vector<Named> kElementLosses{
    {"l1", [](auto& in, Value p) { return l1_loss(p, in["target"], both(in)); },
     [](auto& in, Value p) { return l1_loss(p, in["target"]); }},
    {"mean_squared_error", [](auto& in, Value p) { return mean_squared_error(p, in["target"], both(in)); },
     [](auto& in, Value p) { return mean_squared_error(p, in["target"]); }},
    {"huber", [](auto& in, Value p) { return huber_loss(p, in["target"], {}, both(in)); },
     [](auto& in, Value p) { return huber_loss(p, in["target"]); }},
    {"smooth_l1", [](auto& in, Value p) { return smooth_l1_loss(p, in["target"], {}, both(in)); },
     [](auto& in, Value p) { return smooth_l1_loss(p, in["target"]); }},
    {"relative_l2", [](auto& in, Value p) { return relative_l2_loss(p, in["target"], {}, both(in)); },
     [](auto& in, Value p) { return relative_l2_loss(p, in["target"]); }},
    {"gaussian_nll", [](auto& in, Value p) { return gaussian_nll_loss(p, in["target"], exp(p), {}, both(in)); },
     [](auto& in, Value p) { return gaussian_nll_loss(p, in["target"], exp(p)); }},
    {"binary", [](auto& in, Value p) { return binary_cross_entropy_with_logits(p, in["target"], {}, both(in)); },
     [](auto& in, Value p) { return binary_cross_entropy_with_logits(p, in["target"]); }},
    {"focal", [](auto& in, Value p) { return sigmoid_focal_loss(p, in["target"], {}, both(in)); },
     [](auto& in, Value p) { return sigmoid_focal_loss(p, in["target"]); }},
    {"kl_div", [](auto& in, Value p) { return kl_div(log_sigmoid(p), in["target"], {}, both(in)); },
     [](auto& in, Value p) { return kl_div(log_sigmoid(p), in["target"]); }},
    {"dice", [](auto& in, Value p) { return dice_loss(sigmoid(p), in["target"], {}, both(in)); },
     [](auto& in, Value p) { return dice_loss(sigmoid(p), in["target"]); }},
};

const std::vector<Named> kOtherLosses{
    {"cosine_embedding",
     [](auto& in, Value p) { return cosine_embedding_loss(p, in["target"], in["sign"], {}, {.sample = in["weight"]}); },
     [](auto& in, Value p) { return cosine_embedding_loss(p, in["target"], in["sign"]); }},
    {"cross_entropy of classes",
     [](auto& in, Value p) { return cross_entropy(p, in["label"], {.label_smoothing = 0.1}, of_positions(in)); },
     [](auto& in, Value p) {
       return cross_entropy(p, in["label"], {.class_weights = {1, 0.5, 3}});
     }},
    {"cross_entropy of probabilities",
     [](auto& in, Value p) { return cross_entropy(p, in["target"], {}, of_positions(in)); },
     [](auto& in, Value p) { return cross_entropy(p, in["target"], {.label_smoothing = 0.1}); }},
};

std::vector<Named> all_losses() {
  std::vector<Named> all = kElementLosses;
  all.insert(all.end(), kOtherLosses.begin(), kOtherLosses.end());
  return all;
}

void expect_parts_make_the_whole(const LossOf& loss) {
  const Data data;
  const Outcome whole = run(data, loss, 0, kSamples);
  double sum = 0, weight = 0;
  std::vector<double> gradient(whole.gradient.size());
  for (const Range part : {Range{0, 1}, Range{1, 2}, Range{2, 3}, Range{3, 6}}) {
    const Outcome of_part = run(data, loss, part.begin, part.end);
    sum += of_part.weight * of_part.mean;
    weight += of_part.weight;
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] += of_part.gradient[i];
  }
  EXPECT_NEAR(weight, whole.weight, 1e-13 * whole.weight);
  EXPECT_NEAR(sum / weight, whole.mean, 1e-13 * (1 + std::abs(whole.mean)));
  EXPECT_NE(whole.mean, 0);
  double largest = 0;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    EXPECT_NEAR(gradient[i], whole.gradient[i], 1e-12) << "element " << i;
    largest = std::max(largest, std::abs(gradient[i]));
  }
  EXPECT_GT(largest, 1e-3);
}

TEST(Losses, OfPartsMakeTheWhole) {
  for (const Named& each : all_losses()) {
    SCOPED_TRACE(each.name);
    expect_parts_make_the_whole(each.plain);
  }
}

// Also where a part weighs nothing: its mean is 0 and its gradient is 0.
TEST(Losses, OfPartsMakeTheWholeByTheirWeights) {
  const Data data;
  for (const Named& each : all_losses()) {
    SCOPED_TRACE(each.name);
    expect_parts_make_the_whole(each.weighted);
    const Outcome nothing = run(data, each.weighted, 1, 2);
    EXPECT_EQ(nothing.mean, 0);
    EXPECT_EQ(nothing.weight, 0);
    for (const double g : nothing.gradient) EXPECT_EQ(g, 0);
  }
}

TEST(Losses, CountSamplesUnlessTheyHaveWeights) {
  const Data data;
  for (const Named& each : kElementLosses) EXPECT_EQ(run(data, each.plain, 0, 5).weight, 5) << each.name;
  EXPECT_EQ(run(data, kOtherLosses[1].plain, 0, 1).weight, 1 + 0.5 + 3) << "labels 0, 1 and 2, and one ignored";
  EXPECT_EQ(run(data, kOtherLosses[2].plain, 0, 2).weight, 8) << "positions";
}

TEST(Losses, AMaskedTargetMayBeAnything) {
  const Data data;
  Data missing = data;
  for (std::size_t i = 0; i < missing.target.size(); ++i) {
    if (missing.mask[i] == 0) missing.target[i] = std::nan("");
  }
  for (const Named& each : kElementLosses) {
    const Outcome a = run(data, each.weighted, 0, kSamples), b = run(missing, each.weighted, 0, kSamples);
    EXPECT_EQ(a.mean, b.mean) << each.name;
    EXPECT_EQ(a.gradient, b.gradient) << each.name;
  }
}

// A prediction that is exactly the target: no norm has an infinite slope there, and no probability an infinite
// logarithm.
TEST(Losses, StayFiniteWhereThePredictionIsTheTarget) {
  const Data data;
  const std::vector<LossOf> losses{
      [](auto& in, Value p) { return relative_l2_loss(p, gate(in["target"], p)); },
      [](auto& in, Value p) { return relative_l2_loss(p, in["target"] - in["target"]); },
      [](auto& in, Value p) { return dice_loss(sigmoid(p), in["target"] - in["target"]); },
      [](auto& in, Value p) { return kl_div(log_sigmoid(p), in["target"] - in["target"]); },
      [](auto& in, Value p) { return cosine_embedding_loss(p, in["target"] - in["target"], in["sign"]); },
      [](auto& in, Value p) { return binary_cross_entropy_with_logits(p * 1e4, in["target"]); },
      [](auto& in, Value p) { return sigmoid_focal_loss(p * 1e4, in["target"], {.gamma = 0.5}); },
      [](auto& in, Value p) { return huber_loss(p * 1e200, in["target"]); },
      [](auto& in, Value p) { return gaussian_nll_loss(p, p, in["target"] - in["target"]); }};
  for (std::size_t k = 0; k < losses.size(); ++k) {
    const Outcome outcome = run(data, losses[k], 0, kSamples);
    EXPECT_TRUE(std::isfinite(outcome.mean)) << k;
    for (const double g : outcome.gradient) EXPECT_TRUE(std::isfinite(g)) << k;
  }
}

// Where a network with zeros for weights begins.
TEST(Losses, BinaryCrossEntropyHasItsSlopeAtZero) {
  Data data;
  std::ranges::fill(data.x, 0.0);
  const LossOf slope = [](auto& in, Value p) {
    const Value z = in["x"];
    return Loss(sum(gradient(binary_cross_entropy_with_logits(z, in["target"]).mean, z)) + sum(p));
  };
  double want = 0;
  for (const double t : data.target) want += (0.5 - t) / static_cast<double>(data.target.size());
  EXPECT_NEAR(run(data, slope, 0, kSamples).mean, want, 1e-15);
}

// Class indices are the targets that have 1 in the channel of the class, without the ignored positions.
TEST(Losses, DiceTakesClassIndices) {
  const Data data;
  Data hot = data;
  for (std::int64_t i = 0; i < kSamples * 12; ++i) {
    const std::int32_t label = data.label[static_cast<std::size_t>(i / 12 * 4 + i % 4)];
    hot.target[static_cast<std::size_t>(i)] = label == i / 4 % 3 ? 1 : 0;
    hot.mask[static_cast<std::size_t>(i)] = label == -100 ? 0 : 1;
  }
  const LossOf labels = [](auto& in, Value p) { return dice_loss(sigmoid(p), in["label"]); };
  const LossOf channels = [](auto& in, Value p) {
    return dice_loss(sigmoid(p), in["target"], {}, {.mask = in["mask"]});
  };
  const Outcome a = run(data, labels, 0, kSamples), b = run(hot, channels, 0, kSamples);
  EXPECT_EQ(a.mean, b.mean);
  EXPECT_EQ(a.gradient, b.gradient);
  expect_parts_make_the_whole(labels);
  // The ignored index may be one of the classes.
  Data own = data, marked = data;
  std::ranges::replace(own.label, -100, 1);
  std::ranges::replace(marked.label, 1, -100);
  const LossOf without_1 = [](auto& in, Value p) { return dice_loss(sigmoid(p), in["label"], {.ignore_index = 1}); };
  const Outcome c = run(own, without_1, 0, kSamples), d = run(marked, labels, 0, kSamples);
  EXPECT_EQ(c.mean, d.mean);
  EXPECT_EQ(c.gradient, d.gradient);
  const LossOf strict = [](auto& in, Value p) { return dice_loss(sigmoid(p), in["label"], {.ignore_index = {}}); };
  expect_error([&] { run(data, strict, 0, 2); },
               "[one_hot] (model): 'label' of row 0 of the batch is -100 at position 3, expected a class from 0 to 2");
}

TEST(Losses, SayWhatDoesNotFit) {
  Graph graph(Mode::Train, DType::F32);
  const auto value = [&](const char* name, Shape shape, DType dtype = DType::F32) {
    return graph.input(name, {std::move(shape), dtype});
  };
  const Value p = value("p", {4, 3}), t = value("t", {4, 3}), wide = value("wide", {4, 3}, DType::F64);
  expect_error(
      [&] { l1_loss(p, value("row", {4})); },
      "[l1_loss] (model): the prediction is f32(4, 3), the target f32(4), expected equal shapes (samples, ...)");
  expect_error([&] { mean_squared_error(p, t, {.sample = value("few", {3})}); },
               "[mean_squared_error] (model): the weight of samples is f32(3), expected f32(4)");
  expect_error([&] { mean_squared_error(p, t, {.sample = value("counts", {4}, DType::I32)}); },
               "[mean_squared_error] (model): the weight of samples is i32(4), expected f32: their types differ");
  expect_error(
      [&] {
        huber_loss(p, t, {}, {.mask = value("large", {5, 4, 3})});
      },
      "[huber_loss] (model): the mask is f32(5, 4, 3), expected a shape that broadcasts to (4, 3)");
  expect_error([&] { huber_loss(p, t, {}, {.mask = wide}); },
               "[huber_loss] (model): the mask is f64(4, 3), expected f32");
  expect_error([&] { huber_loss(p, t, {.delta = 0}); }, "[huber_loss] delta is 0, expected more than 0");
  expect_error([&] { smooth_l1_loss(p, t, {.beta = -1}); }, "[smooth_l1_loss] beta is -1, expected 0 or more");
  expect_error([&] { relative_l2_loss(p, t, {.epsilon = -1}); }, "[relative_l2_loss] epsilon is -1");
  expect_error([&] { gaussian_nll_loss(p, t, value("v", {3, 3})); }, "[gaussian_nll_loss] variance: operands are");
  expect_error([&] { gaussian_nll_loss(p, t, t, {.epsilon = 0}); }, "[gaussian_nll_loss] epsilon is 0");
  expect_error([&] { binary_cross_entropy_with_logits(p, t, {.pos_weight = -2}); },
               "[binary_cross_entropy_with_logits] pos_weight is -2, expected 0 or more");
  expect_error([&] { sigmoid_focal_loss(p, t, {.alpha = 2}); }, "[sigmoid_focal_loss] alpha is 2, expected 0 to 1");
  expect_error([&] { sigmoid_focal_loss(p, t, {.gamma = -1}); }, "[sigmoid_focal_loss] gamma is -1");
  expect_error([&] { dice_loss(value("flat", {4}), value("flat2", {4})); },
               "[dice_loss] the probabilities are f32(4), expected (samples, channels, ...)");
  expect_error([&] { cosine_embedding_loss(p, t, value("signs", {3})); },
               "[cosine_embedding_loss] the target is f32(3), expected one number, 1 or -1, for each of 4 samples");
  expect_error([&] { cosine_embedding_loss(p, t, value("signs4", {4}), {.margin = 1.5}); },
               "[cosine_embedding_loss] margin is 1.5, expected -1 to 1");
}

TEST(Losses, CrossEntropySaysWhatDoesNotFit) {
  Graph graph(Mode::Train, DType::F32);
  const auto value = [&](const char* name, Shape shape, DType dtype = DType::F32) {
    return graph.input(name, {std::move(shape), dtype});
  };
  const Value image = value("image", {4, 3, 5, 6});
  expect_error(
      [&] {
        cross_entropy(image, value("label", {4, 5}, DType::I32));
      },
      "[cross_entropy] (model): targets are i32(4, 5), expected i32(4, 5, 6), one class index per position, for "
      "logits f32(4, 3, 5, 6)");
  expect_error(
      [&] {
        cross_entropy(image, value("floats", {4, 5, 6}));
      },
      "[cross_entropy] (model): targets are f32(4, 5, 6), expected class indices i32(4, 5, 6) or probabilities "
      "f32(4, 3, 5, 6)");
  expect_error(
      [&] {
        cross_entropy(image, value("pixels", {4, 5, 6}, DType::I32), {.class_weights = {1, -1, 1}});
      },
      "[cross_entropy] (model): a class weight is negative");
  expect_error([&] { cross_entropy(value("one", {4}), value("none", {4}, DType::I32)); },
               "[cross_entropy] (model): logits are f32(4), expected (samples, classes) or (samples, classes, ...)");
}

// A trainable target would train without the slope that leads to it.
TEST(Losses, CrossEntropyRefusesATargetThatDependsOnAParameter) {
  const Data data;
  expect_error(
      [&] {
        run(
            data, [](auto& in, Value p) { return cross_entropy(p, in["target"] * p); }, 0, 2);
      },
      "[cross_entropy] the targets or weights depend on a parameter, expected constants");
}

TEST(Losses, CrossEntropyNamesThePositionOfAWrongClass) {
  Data data;
  data.label[4 * 3 + 2] = 7;
  const LossOf ignoring = [](auto& in, Value p) { return cross_entropy(p, in["label"], {.ignore_index = 255}); };
  expect_error(
      [&] { run(data, kOtherLosses[1].plain, 0, kSamples); },
      "[cross_entropy] (model): 'label' of row 3 of the batch is 7 at position 2, expected a class from 0 to 2");
  expect_error([&] { run(data, ignoring, 3, 4); },
               "'label' of row 0 of the batch is 7 at position 2, expected a class from 0 to 2 or 255");
  data.label[4 * 3 + 2] = 255;
  data.label[4 * 3 + 3] = 1;
  EXPECT_EQ(run(data, ignoring, 3, 4).weight, 3);
}

}  // namespace
}  // namespace lockstep

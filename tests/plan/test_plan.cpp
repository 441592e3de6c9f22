// The promises of running a plan: gradients and where they land, other batch sizes, observed values, errors at compile
// time.
#include "lockstep/plan/plan.h"

#include <cmath>

#include "lockstep/losses/regression.h"
#include "lockstep/ops/linear.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "tests/plan/gradient_hook.h"
#include "tests/plan/support.h"

namespace lockstep {
namespace {

const plan::ParameterStoreOptions kWide{.dtype = DType::F64, .seed = 11, .gradient_slots = 2};

std::map<std::string, Type> batch_of(std::int64_t n) {
  return {{"x", {Shape{n, 3}, DType::F64}}, {"y", {Shape{n, 2}, DType::F64}}};
}

// y = W2 tanh(W1 x + b1) + b2 with mean squared error; all in f64.
class PlanTest : public ::testing::Test {
 protected:
  PlanTest()
      : w1_(parameters_.add("w1", {4, 3})),
        b1_(parameters_.add("b1", {4}, Role::Bias)),
        w2_(parameters_.add("w2", {2, 4})),
        b2_(parameters_.add("b2", {2}, Role::Bias)) {}

  plan::Traced trace(const plan::Inputs& in) const {
    Graph& g = in.graph();
    const Value hidden = tanh(linear(in["x"], g.parameter(w1_), g.parameter(b1_)));
    g.observe("hidden", hidden);
    const Value y = linear(hidden, g.parameter(w2_), g.parameter(b2_));
    return {.loss = mean_squared_error(y, in["y"]), .prediction = y};
  }
  plan::CompiledModel compile(plan::ParameterStoreOptions options = kWide) const {
    return {parameters_.named(), [this](const plan::Inputs& in) { return trace(in); }, options};
  }
  static void fill(plan::Plan& plan, std::uint64_t seed = 1) {
    fill_input<double>(plan, "x", seed);
    fill_input<double>(plan, "y", seed);
  }
  std::vector<double> gradient(plan::CompiledModel& model, const Parameter& p, int slot = 0) const {
    const auto* g = static_cast<const double*>(model.parameters().gradient(&p, slot));
    return {g, g + p.shape.elements()};
  }

  Parameters parameters_;
  Parameter &w1_, &b1_, &w2_, &b2_;
};

TEST_F(PlanTest, GradientIsThatOfTheSumOverSamples) {
  plan::CompiledModel model = compile();
  plan::Plan& plan = model.plan(Mode::Train, batch_of(5));
  fill(plan);
  const auto* y = static_cast<const double*>(plan.input("y"));
  const std::vector<double> targets(y, y + 10);
  plan.run();
  EXPECT_EQ(plan.weight(), 5);
  const std::vector<double> predictions = values_of(plan.prediction());
  double loss = 0, db0 = 0;
  for (std::size_t i = 0; i < 10; ++i) {
    loss += std::pow(predictions[i] - targets[i], 2) / 10;
    if (i % 2 == 0) db0 += 5 * 2 * (predictions[i] - targets[i]) / 10;  // 5 times the mean's
  }
  EXPECT_NEAR(plan.loss(), loss, 1e-14);
  EXPECT_NEAR(gradient(model, b2_)[0], db0, 1e-13);
}

TEST_F(PlanTest, OverwritesOrAddsInTheSlotItIsAimedAt) {
  plan::CompiledModel model = compile();
  plan::Plan& plan = model.plan(Mode::Train, batch_of(5));
  const auto run = [&](std::uint64_t seed, plan::GradientTarget target) {
    fill(plan, seed);
    plan.run(target);
  };
  run(1, {.slot = 0});
  const auto one = gradient(model, w1_, 0);
  run(2, {.slot = 1});
  const auto two = gradient(model, w1_, 1);
  EXPECT_EQ(gradient(model, w1_, 0), one) << "slot 0 is none of the second run's business";
  EXPECT_NE(one, two);
  run(2, {.slot = 0, .accumulate = true});
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(gradient(model, w1_, 0)[i], one[i] + two[i]);
  EXPECT_EQ(gradient(model, w1_, 1), two);
  run(1, {.slot = 0});
  EXPECT_EQ(gradient(model, w1_, 0), one) << "overwritten again";
}

TEST_F(PlanTest, GivesTheSameBitsTwice) {
  plan::CompiledModel model = compile({.seed = 4});
  plan::Plan& plan = model.plan(Mode::Train, {{"x", {Shape{7, 3}, DType::F32}}, {"y", {Shape{7, 2}, DType::F32}}});
  const auto run = [&] {
    fill_input<float>(plan, "x");
    fill_input<float>(plan, "y");
    plan.run();
    auto all = values_of(model.parameters().read_gradient("w1"));
    all.push_back(plan.loss());
    return all;
  };
  EXPECT_EQ(run(), run());
}

TEST_F(PlanTest, TellsWhenEachGradientIsFinal) {
  plan::CompiledModel model = compile();
  plan::Plan& plan = model.plan(Mode::Train, batch_of(5));
  for (const bool accumulate : {false, true}) {
    fill(plan);
    plan.run({});
    fill(plan);
    std::map<std::string, std::vector<double>> seen;
    GradientHook hook([&](const Parameter* p) {
      EXPECT_TRUE(seen.emplace(model.parameters().name(p), gradient(model, *p)).second) << "told twice";
    });
    plan.run({.slot = 0, .accumulate = accumulate}, hook);
    EXPECT_EQ(seen.size(), 4u);
    for (const auto& [name, values] : seen)
      EXPECT_EQ(values, values_of(model.parameters().read_gradient(name))) << name;
  }
}

TEST_F(PlanTest, OtherBatchSizesArePlansOverTheSameParameters) {
  plan::CompiledModel model = compile();
  plan::Plan& five = model.plan(Mode::Train, batch_of(5));
  plan::Plan& two = model.plan(Mode::Train, batch_of(2));
  EXPECT_NE(&five, &two);
  EXPECT_EQ(&five, &model.plan(Mode::Train, batch_of(5)));
  plan::Plan& evaluation = model.plan(Mode::Eval, batch_of(2));
  EXPECT_NE(&evaluation, &two);
  model.parameters().write("w2", Tensor({2, 4}, DType::F64));
  model.parameters().write("b2", Tensor::from<double>({2}, std::vector{3.0, 4.0}));
  model.parameters().refresh();
  for (plan::Plan* plan : {&five, &two, &evaluation}) {
    fill(*plan);
    plan->run();
    EXPECT_EQ(plan->prediction().data<double>()[0], 3) << plan->batch();
    EXPECT_EQ(plan->prediction().data<double>()[3], 4) << plan->batch();
  }
}

// The arena moves when a larger plan comes; the smaller one must follow.
TEST_F(PlanTest, AnEarlierPlanRunsAfterTheArenaGrew) {
  plan::CompiledModel model = compile();
  plan::Plan& small = model.plan(Mode::Train, batch_of(2));
  fill(small);
  small.run();
  const auto before = gradient(model, w1_);
  const double loss = small.loss();
  plan::Plan& large = model.plan(Mode::Train, batch_of(500));
  fill(large);
  large.run();
  fill(small);
  small.run();
  EXPECT_EQ(gradient(model, w1_), before);
  EXPECT_EQ(small.loss(), loss);
  EXPECT_EQ(model.arena().bytes(), large.arena_bytes());
}

// Batches of 2 and 3 samples accumulate to the gradient of their 5.
TEST_F(PlanTest, PartsOfABatchAddUpToTheWhole) {
  plan::CompiledModel model = compile();
  plan::Plan& whole = model.plan(Mode::Train, batch_of(5));
  fill(whole);
  const auto* x = static_cast<const double*>(whole.input("x"));
  const auto* y = static_cast<const double*>(whole.input("y"));
  const std::vector<double> xs(x, x + 15), ys(y, y + 10);
  whole.run();
  const auto want = gradient(model, w1_);
  for (const auto& [begin, count] : {std::pair{0, 2}, {2, 3}}) {
    plan::Plan& part = model.plan(Mode::Train, batch_of(count));
    std::copy_n(xs.begin() + begin * 3, count * 3, static_cast<double*>(part.input("x")));
    std::copy_n(ys.begin() + begin * 2, count * 2, static_cast<double*>(part.input("y")));
    part.run({.slot = 0, .accumulate = begin > 0});
  }
  const auto got = gradient(model, w1_);
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-14);
}

TEST_F(PlanTest, ABatchOfNoSamplesRuns) {
  plan::CompiledModel model = compile();
  plan::Plan& five = model.plan(Mode::Train, batch_of(5));
  fill(five);
  five.run();  // so that the slot holds something
  plan::Plan& none = model.plan(Mode::Train, batch_of(0));
  none.run();
  EXPECT_EQ(none.loss(), 0);
  EXPECT_EQ(none.weight(), 0);
  for (const Parameter* p : {&w1_, &b1_, &w2_, &b2_}) {
    for (double v : gradient(model, *p)) EXPECT_EQ(v, 0) << model.parameters().name(p);
  }
}

TEST_F(PlanTest, ABatchOfNoSamplesAddsNothing) {
  plan::CompiledModel model = compile();
  plan::Plan& five = model.plan(Mode::Train, batch_of(5));
  fill(five);
  five.run();
  const auto before = gradient(model, w1_);
  model.plan(Mode::Train, batch_of(0)).run({.slot = 0, .accumulate = true});
  EXPECT_EQ(gradient(model, w1_), before);
}

TEST_F(PlanTest, ObservedValuesCanBeRead) {
  plan::CompiledModel model = compile();
  plan::Plan& plan = model.plan(Mode::Train, batch_of(3));
  fill(plan);
  const auto* x = static_cast<const double*>(plan.input("x"));
  const std::vector<double> xs(x, x + 9);
  plan.run();
  const auto w = values_of(model.parameters().read("w1")), b = values_of(model.parameters().read("b1"));
  const auto hidden = values_of(plan.observed("hidden"));
  for (std::size_t n = 0; n < 3; ++n) {
    for (std::size_t o = 0; o < 4; ++o) {
      double sum = b[o];
      for (std::size_t i = 0; i < 3; ++i) sum += w[o * 3 + i] * xs[n * 3 + i];
      EXPECT_NEAR(hidden[n * 4 + o], std::tanh(sum), 1e-14);
    }
  }
  EXPECT_EQ(plan.observed_names(), std::vector<std::string>{"hidden"});
  expect_error([&] { (void)plan.observed("other"); }, "'other' is not observed");
}

TEST_F(PlanTest, AFrozenParameterHasNoGradientAndStays) {
  w1_.trainable = false;
  plan::CompiledModel model = compile();
  const auto before = [&] {
    plan::Plan& plan = model.plan(Mode::Train, batch_of(3));
    fill(plan);
    auto value = values_of(model.parameters().read("w1"));
    plan.run();
    return value;
  }();
  EXPECT_FALSE(model.parameters().has_gradient(&w1_));
  EXPECT_TRUE(model.parameters().has_gradient(&b1_));
  EXPECT_EQ(values_of(model.parameters().read("w1")), before);
  plan::ParameterStore& store = model.parameters();
  for (const std::function<void()>& access : std::vector<std::function<void()>>{
           [&] { store.gradient(&w1_, 0); }, [&] { store.read_gradient("w1"); }, [&] { store.read_state("w1", 0); },
           [&] { store.write_state("w1", 0, Tensor(w1_.shape, DType::F64)); }})
    expect_error(access, "'w1' has no gradient");
}

TEST_F(PlanTest, NothingIsComputedForFrozenPartsInFront) {
  plan::CompiledModel all = compile();
  const std::size_t steps = all.plan(Mode::Train, batch_of(3)).steps().size();
  w1_.trainable = b1_.trainable = false;
  plan::CompiledModel last = compile();
  EXPECT_LE(last.plan(Mode::Train, batch_of(3)).steps().size(),
            steps - 3);  // weights with bias, tanh, and the way to tanh
}

TEST_F(PlanTest, ReportsUnusedParametersByName) {
  parameters_.add("extra.weight", {3});
  parameters_.add("extra.bias", {3}, Role::Bias);
  plan::CompiledModel strict = compile();
  expect_error(
      [&] { strict.plan(Mode::Train, batch_of(3)); },
      "the loss does not depend on 2 trainable parameters: extra.weight, extra.bias; freeze them or take them out");
  plan::CompiledModel lenient(parameters_.named(), [this](const plan::Inputs& in) { return trace(in); }, kWide,
                              {.unused = plan::Unused::Ignore});
  plan::Plan& plan = lenient.plan(Mode::Train, batch_of(3));
  fill(plan);
  plan.run();
  EXPECT_EQ(lenient.parameters().read("extra.weight").elements(), 3);
}

TEST_F(PlanTest, EvaluationNeedsNoLossAndNoGradientMemory) {
  plan::CompiledModel model(
      parameters_.named(), [this](const plan::Inputs& in) { return plan::Traced{.prediction = trace(in).prediction}; },
      kWide);
  plan::Plan& plan = model.plan(Mode::Eval, batch_of(3));
  EXPECT_EQ(plan.input("y"), nullptr) << "the prediction does not read it";
  fill_input<double>(plan, "x");
  plan.run();
  EXPECT_EQ(plan.prediction().shape(), (Shape{3, 2}));
  EXPECT_FALSE(model.parameters().has_gradient(&w1_));
  expect_error([&] { (void)plan.loss(); }, "did not return this value");
}

TEST_F(PlanTest, TrainingAfterAModelWasCompiledForInferenceIsAnError) {
  plan::CompiledModel model = compile();
  model.plan(Mode::Eval, batch_of(3));
  expect_error([&] { model.plan(Mode::Train, batch_of(3)); }, "compile the training plan first");
}

TEST_F(PlanTest, NamesTheInputsThereAre) {
  plan::CompiledModel model(
      parameters_.named(), [](const plan::Inputs& in) { return plan::Traced{.loss = mean(in["label"])}; }, kWide);
  expect_error([&] { model.plan(Mode::Train, batch_of(3)); }, "[model] there is no input 'label'; the batch has: x, y");
}

TEST_F(PlanTest, RefusesInputsOfDifferentNumbersOfSamples) {
  plan::CompiledModel model = compile();
  std::map<std::string, Type> inputs = batch_of(3);
  inputs["y"] = {Shape{4, 2}, DType::F64};
  expect_error([&] { model.plan(Mode::Train, inputs); }, "number of samples: 'x' has 3, 'y' has 4");
}

TEST_F(PlanTest, TheGraphsOwnInputsShareNoNameWithThoseOfTheBatch) {
  plan::CompiledModel model(
      parameters_.named(),
      [](const plan::Inputs& in) {
        in.graph().observe("own", in.graph().step());
        return plan::Traced{.prediction = in["step"]};
      },
      kWide);
  plan::Plan& plan = model.plan(Mode::Eval, {{"step", {Shape{1}, DType::F64}}});
  *static_cast<double*>(plan.input("step")) = 0.5;
  *static_cast<std::int64_t*>(plan.input(Graph::kStep)) = 7;
  plan.run();
  EXPECT_EQ(plan.prediction().data<double>()[0], 0.5);
  EXPECT_EQ(plan.observed("own").data<std::int64_t>()[0], 7);
  expect_error(
      [&] {
        model.plan(Mode::Eval, {{"@step", {Shape{1}, DType::F64}}});
      },
      "'@step': names that begin with '@'");
}

TEST_F(PlanTest, NeedsAScalarLoss) {
  plan::CompiledModel vector_loss(
      parameters_.named(), [this](const plan::Inputs& in) { return plan::Traced{.loss = trace(in).prediction}; },
      kWide);
  expect_error([&] { vector_loss.plan(Mode::Train, batch_of(3)); }, "[loss] the loss is f64(3, 2), expected a scalar");
  plan::CompiledModel no_loss(
      parameters_.named(), [](const plan::Inputs&) { return plan::Traced{}; }, kWide);
  expect_error([&] { no_loss.plan(Mode::Train, batch_of(3)); }, "returned no loss");
}

TEST_F(PlanTest, DescribesItsSteps) {
  plan::CompiledModel model = compile();
  const std::string text = model.plan(Mode::Train, batch_of(3)).describe();
  for (const char* word : {"linear", "linear_backward_weights", "pointwise", "f64(3, 4):plain", "tanh", "arena"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word << " is missing in\n" << text;
  }
}

TEST(Plan, RefusesToComputeOnIntegers) {
  plan::CompiledModel model({}, [](const plan::Inputs& in) { return plan::Traced{.prediction = sum(in["target"])}; });
  expect_error(
      [&] {
        model.plan(Mode::Eval, {{"target", {Shape{4}, DType::I32}}});
      },
      "[sum] (model): input is i32(4), expected a floating type");
}

TEST(Plan, ParametersOutsideTheModelAreNamed) {
  Parameters parameters, stray;
  const Parameter &a = parameters.add("a", {3}), &b = stray.add("b", {3});
  const auto function = [&](const plan::Inputs& in) {
    return plan::Traced{.loss = mean(in.graph().parameter(a) * in.graph().parameter(b))};
  };
  plan::CompiledModel model(parameters.named(), function, kWide);
  expect_error(
      [&] {
        model.plan(Mode::Train, {{"x", {Shape{4}, DType::F64}}});
      },
      "a parameter of shape (3) is not part of the model");
}

}  // namespace
}  // namespace lockstep

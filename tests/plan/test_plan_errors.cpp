// The failures while plans are made and run: errors keep their class and name the node; what could not be compiled
// leaves nothing behind.
#include <cmath>
#include <functional>
#include <new>

#include "lockstep/kernels/registry.h"
#include "lockstep/metrics/metrics.h"
#include "lockstep/ops/cross_entropy.h"
#include "lockstep/ops/dropout.h"
#include "lockstep/ops/linear.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"
#include "tests/plan/gradient_hook.h"
#include "tests/plan/support.h"

namespace lockstep {
namespace {

// Its kernel does what a test says.
class ObedientOp : public Op {
 public:
  std::string_view name() const override { return "test_obedient"; }
  std::vector<Type> infer(std::string_view, std::span<const Type> inputs) const override { return {inputs[0]}; }
  static inline std::function<void()> order = [] {};
};

class OrderedError : public Error {
 public:
  using Error::Error;
};

class PlanErrors : public ::testing::Test {
 protected:
  PlanErrors() {
    kernels::register_plain_kernel(
        "test_obedient", [](const kernels::KernelRequest&, const kernels::Arguments&) { ObedientOp::order(); });
  }
  ~PlanErrors() override {
    ObedientOp::order = [] {};
  }

  static std::unique_ptr<plan::CompiledModel> model_in(std::string place) {
    return std::make_unique<plan::CompiledModel>(std::vector<NamedParameter>{}, [place](const plan::Inputs& in) {
      const Graph::Scope scope(in.graph(), place);
      return plan::Traced{.prediction = apply_op(std::make_shared<ObedientOp>(), {in["x"]})};
    });
  }
  static void run(plan::CompiledModel& model) { model.plan(Mode::Eval, {{"x", {Shape{3}, DType::F32}}}).run(); }
  template <class Thrown>
  static std::string message(const std::string& place = "layer1.0.conv1") {
    const auto model = model_in(place);
    try {
      run(*model);
    } catch (const Thrown& error) {
      EXPECT_EQ(typeid(error), typeid(Thrown));
      return error.what();
    }
    return "no error of this class";
  }
};

TEST_F(PlanErrors, OfAKernelKeepTheirClass) {
  ObedientOp::order = [] { throw PeerError("[reduction] local rank 1 of this node has failed"); };
  EXPECT_EQ(message<PeerError>(), "[reduction] local rank 1 of this node has failed");
  ObedientOp::order = [] { throw OrderedError("[memory] not what was written"); };
  EXPECT_EQ(message<OrderedError>(), "[memory] not what was written");
  ObedientOp::order = [] { throw SampleError("[here] ", 3, " is wrong"); };
  EXPECT_EQ(message<SampleError>(), "[here] row 3 of the batch is wrong");
}

TEST_F(PlanErrors, OfAKernelNameItsNode) {
  ObedientOp::order = [] { fail("test_obedient", "no"); };
  EXPECT_EQ(message<Error>(), "[test_obedient] layer1.0.conv1: no");
  ObedientOp::order = [] { fail("mpi", "no"); };
  EXPECT_EQ(message<Error>(), "[test_obedient] layer1.0.conv1: [mpi] no");
  ObedientOp::order = [] { throw std::runtime_error("no"); };
  EXPECT_EQ(message<Error>(), "[test_obedient] layer1.0.conv1: no");
  EXPECT_EQ(message<Error>(""), "[test_obedient] (model): no");
}

TEST_F(PlanErrors, AProfiledStepFailsAlike) {
  const auto model = model_in("");
  plan::Plan& plan = model->plan(Mode::Eval, {{"x", {Shape{3}, DType::F32}}});
  plan.start_profile();
  ObedientOp::order = [] { throw PeerError("[reduction] failed"); };
  EXPECT_THROW(plan.run(), PeerError);
}

// Linear, with a cross entropy over whatever logits it makes.
struct Classes {
  Parameters parameters;
  Parameter& w = parameters.add("w", {3, 4});
  plan::CompiledModel model{parameters.named(), [this](const plan::Inputs& in) {
                              const Value logits = linear(in["x"], in.graph().parameter(w));
                              return plan::Traced{.loss = cross_entropy(logits, in["label"]),
                                                  .metrics = {metrics::accuracy(logits, in["label"])}};
                            }};
  plan::Plan& plan(Mode mode, std::int64_t samples = 2) {
    return model.plan(mode, {{"x", {Shape{samples, 4}, DType::F32}}, {"label", {Shape{samples}, DType::I32}}});
  }
};

TEST_F(PlanErrors, ATargetOutOfRangeNamesPlaceFieldAndRow) {
  Classes classes;
  for (const Mode mode : {Mode::Train, Mode::Eval}) {
    plan::Plan& plan = classes.plan(mode);
    fill_input<float>(plan, "x");
    auto* labels = static_cast<std::int32_t*>(plan.input("label"));
    labels[0] = 2;
    labels[1] = 3;
    try {
      plan.run();
      FAIL() << "class 3 of 3 was accepted";
    } catch (const SampleError& error) {
      EXPECT_STREQ(error.what(),
                   "[cross_entropy] (model): 'label' of row 1 of the batch is 3, expected a class from 0 to 2");
      EXPECT_EQ(error.row(), 1);
      EXPECT_STREQ(error.of("sample 4711").what(),
                   "[cross_entropy] (model): 'label' of sample 4711 is 3, expected a class from 0 to 2");
    }
  }
}

TEST_F(PlanErrors, NodesOutsideOfAllModulesHaveANameInPlans) {
  Classes classes;
  for (const plan::PlanStep& step : classes.plan(Mode::Train).steps())
    EXPECT_TRUE(step.path == "(model)" || step.path == "grad (model)") << "'" << step.path << "'";
}

TEST_F(PlanErrors, WhatCannotBeCompiledLeavesNothing) {
  Parameters parameters;
  Parameter& w = parameters.add("w", {2, 3});
  bool works = false;
  plan::CompiledModel model(parameters.named(), [&](const plan::Inputs& in) {
    check(works, "model", "not today");
    return plan::Traced{.loss = mean(linear(in["x"], in.graph().parameter(w)))};
  });
  const std::map<std::string, Type> inputs{{"x", {Shape{4, 3}, DType::F32}}};
  for (int time = 0; time < 2; ++time) {
    expect_error([&] { model.plan(Mode::Train, inputs); }, "[model] not today");
    EXPECT_EQ(model.bytes(), model.parameters().bytes());
    expect_error([&] { (void)model.parameters().read("w"); }, "'w' has no memory yet: compile a plan");
    expect_error([&] { model.parameters().write("w", Tensor({2, 3}, DType::F32)); }, "'w' has no memory yet");
    expect_error([&] { (void)model.parameters().read_gradient("w"); }, "'w' has no gradient");
    model.parameters().refresh();
  }
  works = true;
  plan::Plan& plan = model.plan(Mode::Train, inputs);
  fill_input<float>(plan, "x");
  plan.run();
  EXPECT_TRUE(std::isfinite(plan.loss()));
  EXPECT_GT(model.bytes(), model.parameters().bytes());
  EXPECT_EQ(&plan, &model.plan(Mode::Train, inputs));
}

// A kernel would read ids behind those of the samples.
TEST_F(PlanErrors, OfRandomNumbersForWhatIsNoBatch) {
  plan::CompiledModel model(std::vector<NamedParameter>{}, [](const plan::Inputs& in) {
    const Graph::Scope scope(in.graph(), "tower.drop");
    return plan::Traced{.prediction = dropout(reshape(in["x"], {6, 2}), 0.5, "tower.drop")};
  });
  expect_error(
      [&] {
        model.plan(Mode::Train, {{"x", {Shape{3, 4}, DType::F32}}});
      },
      "[dropout] tower.drop: a value of 6 rows in a batch of 3 samples; the first dimension must be the "
      "samples of the batch");
}

TEST_F(PlanErrors, AnInitializerThatThrowsIsAskedAgain) {
  bool works = false;
  Parameter w{.shape = {3}, .initialize = [&](const Shape&, std::span<double> values, RandomStream&) {
                check(works, "init", "no numbers today");
                std::ranges::fill(values, 7.0);
              }};
  plan::CompiledModel model({{"w", &w}}, [&](const plan::Inputs& in) {
    return plan::Traced{.loss = mean(in.graph().parameter(w) * in["x"])};
  });
  const std::map<std::string, Type> inputs{{"x", {Shape{3}, DType::F32}}};
  expect_error([&] { model.plan(Mode::Train, inputs); }, "no numbers today");
  expect_error([&] { model.plan(Mode::Train, inputs); }, "no numbers today");
  EXPECT_EQ(model.parameters().buckets().size(), 0u);
  works = true;
  model.plan(Mode::Train, inputs);
  EXPECT_EQ(model.parameters().buckets().size(), 1u);
  EXPECT_EQ(values_of(model.parameters().read("w")), (std::vector<double>{7, 7, 7}));
}

// The arena has given its memory back before it asks for more.
TEST_F(PlanErrors, APlanThatIsTooLargeLeavesTheOthers) {
  plan::CompiledModel model({},
                            [](const plan::Inputs& in) { return plan::Traced{.prediction = square(in["x"] + 1.0)}; });
  const auto plan_for = [&](std::int64_t samples) -> plan::Plan& {
    return model.plan(Mode::Eval, {{"x", {Shape{samples}, DType::F64}}});
  };
  plan::Plan& small = plan_for(4);
  const std::size_t bytes = model.bytes();
  expect_error([&] { plan_for(std::int64_t{1} << 57); }, "bytes could not be allocated");
  EXPECT_EQ(model.bytes(), bytes);
  auto* x = static_cast<double*>(small.input("x"));
  for (int i = 0; i < 4; ++i) x[i] = i;
  small.run();
  EXPECT_EQ(values_of(small.prediction()), (std::vector<double>{1, 4, 9, 16}));
}

}  // namespace
}  // namespace lockstep

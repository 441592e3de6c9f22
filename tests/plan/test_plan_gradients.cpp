// Gradients of small graphs that are out of the ordinary: losses with weights, parameters that share a gradient, and
// gradients that are made of others.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "lockstep/metrics/metrics.h"
#include "lockstep/ops/cross_entropy.h"
#include "lockstep/ops/linear.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"
#include "tests/plan/gradient_hook.h"
#include "tests/plan/support.h"

namespace lockstep {
namespace {

const plan::ParameterStoreOptions kInF64{.dtype = DType::F64, .seed = 11};

TEST(PlanGradients, TheWeightOfALossWeighsItsGradient) {
  Parameters parameters;
  const Parameter& logits = parameters.add("logits", {3, 4});
  const auto function = [&](const plan::Inputs& in) {
    const Value x = in.graph().parameter(logits);
    return plan::Traced{.loss = cross_entropy(x, in["target"], {.class_weights = {1, 2, 0.5, 4}}),
                        .metrics = {metrics::accuracy(x, in["target"])}};
  };
  plan::CompiledModel model(parameters.named(), function, kInF64);
  plan::Plan& plan = model.plan(Mode::Train, {{"target", {Shape{3}, DType::I32}}});
  const std::int32_t targets[] = {1, 3, 3};
  std::memcpy(plan.input("target"), targets, sizeof targets);
  plan.run();
  EXPECT_EQ(plan.weight(), 2 + 4 + 4);
  const auto x = values_of(model.parameters().read("logits")),
             g = values_of(model.parameters().read_gradient("logits"));
  const double weights[] = {2, 4, 4};
  double correct = 0;
  for (std::size_t n = 0; n < 3; ++n) {
    double partition = 0;
    for (std::size_t c = 0; c < 4; ++c) partition += std::exp(x[n * 4 + c]);
    for (std::size_t c = 0; c < 4; ++c) {
      const double p = std::exp(x[n * 4 + c]) / partition;  // of the weighted sum: nothing is divided by 10
      EXPECT_NEAR(g[n * 4 + c], weights[n] * (p - (c == static_cast<std::size_t>(targets[n]) ? 1 : 0)), 1e-13);
    }
    correct += std::max_element(&x[n * 4], &x[n * 4] + 4) == &x[n * 4] + targets[n] ? 1 : 0;
  }
  ASSERT_EQ(plan.metrics().size(), 1U);
  EXPECT_EQ(plan.values(plan.metrics()[0].sums[0])[0], correct);
}

TEST(PlanGradients, OneValueMayBeTheGradientOfTwoParameters) {
  Parameters parameters;
  const Parameter &a = parameters.add("a", {3, 2}), &b = parameters.add("b", {3, 2}), &c = parameters.add("c", {6});
  const auto function = [&](const plan::Inputs& in) {
    Graph& g = in.graph();
    const Value s = g.parameter(a) + g.parameter(b);  // dL/da and dL/db are one value, dL/dc is a view of it
    return plan::Traced{.loss = mean((s + reshape(g.parameter(c), {3, 2})) * in["x"])};
  };
  plan::CompiledModel model(parameters.named(), function, kInF64);
  plan::Plan& plan = model.plan(Mode::Train, {{"x", {Shape{3, 2}, DType::F64}}});
  for (const bool accumulate : {false, true}) {
    fill_input<double>(plan, "x");
    const auto* x = static_cast<const double*>(plan.input("x"));
    std::vector<double> want(x, x + 6);
    plan.run({.slot = 0, .accumulate = accumulate});
    for (double& v : want) v = v * 3 / 6 * (accumulate ? 2 : 1);
    for (const auto* name : {"a", "b", "c"}) {
      const auto got = values_of(model.parameters().read_gradient(name));
      for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(got[i], want[i], 1e-15) << name;
    }
  }
}

TEST(PlanGradients, ALossThatIsAParameterHasGradientOne) {
  Parameters parameters;
  const Parameter& a = parameters.add("a", {});
  plan::CompiledModel model(
      parameters.named(), [&](const plan::Inputs& in) { return plan::Traced{.loss = in.graph().parameter(a)}; },
      kInF64);
  plan::Plan& plan = model.plan(Mode::Train, {{"x", {Shape{4}, DType::F64}}});
  plan.run();
  EXPECT_EQ(values_of(model.parameters().read_gradient("a"))[0], 4);  // times the number of samples
}

// The reduction overwrites a slot as soon as its gradient is final. Here that of w0 is also what a's and b's are made
// of.
TEST(PlanGradients, ReadsNoGradientThatIsFinal) {
  Parameters parameters;
  const Parameter &w0 = parameters.add("w0", {2, 2}), &a = parameters.add("a", {2, 3}),
                  &b = parameters.add("b", {3, 2});
  plan::CompiledModel model(
      parameters.named(),
      [&](const plan::Inputs& in) {
        Graph& g = in.graph();
        return plan::Traced{.loss = mean(square(g.parameter(w0) + matmul(g.parameter(a), g.parameter(b))))};
      },
      {.dtype = DType::F64, .seed = 11, .bucket_bytes = 8});
  plan::Plan& plan = model.plan(Mode::Train, {{"x", {Shape{1}, DType::F64}}});
  const auto gradient = [&](const Parameter* p) {
    const auto* g = static_cast<const double*>(model.parameters().gradient(p, 0));
    return std::vector<double>(g, g + p->shape.elements());
  };
  std::map<const Parameter*, std::vector<double>> undisturbed, disturbed;
  GradientHook look([&](const Parameter* p) { undisturbed[p] = gradient(p); });
  plan.run({}, look);
  GradientHook disturb([&](const Parameter* p) {
    disturbed[p] = gradient(p);
    std::fill_n(static_cast<double*>(model.parameters().gradient(p, 0)), p->shape.elements(), 1e9);
  });
  plan.run({}, disturb);
  EXPECT_EQ(undisturbed.size(), 3U);
  EXPECT_EQ(disturbed, undisturbed);
}

}  // namespace
}  // namespace lockstep

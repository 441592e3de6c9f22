// A small network with everything that moves elements between convolutions: the same in f64, f32 and bf16, in the
// layouts that each chooses, with recomputation, and for a batch without samples.
#include <cmath>

#include "lockstep/ops/concat.h"
#include "lockstep/ops/convolution.h"
#include "lockstep/ops/pad.h"
#include "lockstep/ops/permute.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/slice.h"
#include "tests/plan/support.h"

namespace lockstep {
namespace {

struct ShapeNetwork {
  Parameters parameters;
  Parameter& w1 = parameters.add("w1", {16, 3, 3, 3});
  Parameter& w2 = parameters.add("w2", {16, 16, 3, 3});
  Parameter& w3 = parameters.add("w3", {8, 32, 3, 3});

  plan::Traced operator()(const plan::Inputs& in) const {
    Graph& g = in.graph();
    const Conv2dOptions same{.padding_h = 1, .padding_w = 1};
    const Value a = silu(conv2d(in["x"], g.parameter(w1), {}, same));
    const Value b = leaky_relu(conv2d(pad(0.3 * a, {1, 1, 1, 1}, PadMode::Circular), g.parameter(w2)), 0.1);
    const Value c = conv2d(concat({a, 0.3 * b}, 1), g.parameter(w3), {}, same);
    const auto parts = split(0.2 * c, 4, 1);
    const Value d = pad(parts[0] * hard_sigmoid(parts[1]), {2, 0, 0, 2}, PadMode::Reflect);
    const Value e = roll(flip(pixel_shuffle(d, 2), {2}), {3, -1}, {2, 3});  // (N, 1, 20, 20)
    const Value y = slice(permute(pad(e, {0, 1}), {0, 2, 3, 1}), 1, 1, 9, 2);
    return {.loss = mean(square(y - in["t"])), .prediction = y};
  }
};

struct ShapeOutcome {
  double loss;
  std::vector<double> prediction, gradients;
};

template <class T>
ShapeOutcome outcome(DType dtype, plan::CompileOptions options = {}, std::int64_t samples = 2) {
  const ShapeNetwork network;
  plan::CompiledModel model(
      network.parameters.named(), [&](const plan::Inputs& in) { return network(in); }, {.dtype = dtype, .seed = 4},
      std::move(options));
  plan::Plan& plan =
      model.plan(Mode::Train, {{"x", {Shape{samples, 3, 8, 8}, dtype}}, {"t", {Shape{samples, 9, 21, 1}, dtype}}});
  fill_input<T>(plan, "x");
  fill_input<T>(plan, "t");
  plan.run();
  ShapeOutcome result{plan.loss(), values_of(plan.prediction()), {}};
  for (const NamedParameter& p : network.parameters.named()) {
    const std::vector<double> gradient = values_of(model.parameters().read_gradient(p.name));
    result.gradients.insert(result.gradients.end(), gradient.begin(), gradient.end());
  }
  return result;
}

void expect_near(const ShapeOutcome& got, const ShapeOutcome& want, double tolerance) {
  EXPECT_NEAR(got.loss, want.loss, tolerance * want.loss);
  EXPECT_LT(distance(got.prediction, want.prediction), tolerance);
  EXPECT_LT(distance(got.gradients, want.gradients), tolerance);
}

TEST(ShapesInPlans, AreTheSameInEveryTypeAndLayout) {
  const ShapeOutcome wide = outcome<double>(DType::F64);
  expect_near(outcome<double>(DType::F64, {.fuse = false}), wide, 1e-13);
  expect_near(outcome<float>(DType::F32), wide, 1e-4);
  for (const char* prefer : {"generic", "onednn", "native"})
    expect_near(outcome<float>(DType::F32, {.kernels = {.prefer = prefer}}), wide, 1e-4);
  expect_near(outcome<double>(DType::F64, {.recompute = plan::Recompute::Blocks}), wide, 1e-13);
  expect_near(outcome<float>(DType::F32, {.bf16 = true}), wide, 0.1);
}

TEST(ShapesInPlans, TakeABatchWithoutSamples) {
  const ShapeOutcome none = outcome<float>(DType::F32, {}, 0);
  EXPECT_EQ(none.loss, 0);
  for (const double g : none.gradients) EXPECT_EQ(g, 0);
}

}  // namespace
}  // namespace lockstep

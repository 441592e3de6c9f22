// Layers that move elements, and activations with options, in a Sequential: what they compute and what they refuse.
#include "lockstep/nn/shapes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "lockstep/core/error.h"
#include "lockstep/nn/activations.h"
#include "lockstep/nn/sequential.h"
#include "lockstep/plan/compiled_model.h"

namespace lockstep::nn {
namespace {

// The layer's output for an input with the elements 0, 1, 2, ... less `offset`.
Tensor output(const std::function<void(Sequential&)>& build, const Shape& shape, float offset = 0) {
  Sequential network;
  build(network);
  plan::CompiledModel compiled(network.named_parameters(),
                               [&](const plan::Inputs& in) { return plan::Traced{.prediction = network(in["x"])}; });
  plan::Plan& plan = compiled.plan(Mode::Eval, {{"x", {shape, DType::F32}}});
  auto* const x = static_cast<float*>(plan.input("x"));
  for (std::int64_t i = 0; i < shape.elements(); ++i) x[i] = static_cast<float>(i) - offset;
  plan.run();
  return plan.prediction().clone();
}

void expect_values(const Tensor& got, const Shape& shape, const std::vector<float>& values) {
  EXPECT_EQ(got.shape(), shape);
  EXPECT_EQ(std::vector<float>(got.data<float>().begin(), got.data<float>().end()), values);
}

TEST(ShapeLayers, PadAsTheirNamesSay) {
  const Shape row{1, 1, 3};
  expect_values(output([](Sequential& s) { s.append<ReflectionPad1d>(2); }, row), {1, 1, 7}, {2, 1, 0, 1, 2, 1, 0});
  expect_values(output([](Sequential& s) { s.append<ReplicationPad1d>(2); }, row), {1, 1, 7}, {0, 0, 0, 1, 2, 2, 2});
  expect_values(output([](Sequential& s) { s.append<CircularPad1d>(2); }, row), {1, 1, 7}, {1, 2, 0, 1, 2, 0, 1});
  expect_values(output([](Sequential& s) { s.append<ZeroPad1d>(1); }, row), {1, 1, 5}, {0, 0, 1, 2, 0});
  expect_values(output(
                    [](Sequential& s) {
                      s.append<ConstantPad2d>(std::vector<std::int64_t>{1, 0, 0, 1}, 9);
                    },
                    Shape{1, 1, 2, 2}),
                {1, 1, 3, 3}, {9, 0, 1, 9, 2, 3, 9, 9, 9});
}

TEST(ShapeLayers, ShuffleAndFlatten) {
  const auto shuffle = [](Sequential& s) { s.append<PixelShuffle>(2); };
  expect_values(output(shuffle, Shape{1, 4, 1, 2}), {1, 1, 2, 4}, {0, 2, 1, 3, 4, 6, 5, 7});
  const auto back = [](Sequential& s) { s.append<PixelShuffle>(2).append<PixelUnshuffle>(2).append<Flatten>(); };
  expect_values(output(back, Shape{1, 4, 1, 2}), {1, 8}, {0, 1, 2, 3, 4, 5, 6, 7});
}

TEST(ShapeLayers, ActivationsTakeTheirOptions) {
  const Shape x{5};  // -2 to 2
  expect_values(output([](Sequential& s) { s.append<LeakyReLU>(0.5); }, x, 2), x, {-1, -0.5F, 0, 1, 2});
  expect_values(output([](Sequential& s) { s.append<LeakyReLU>().append(relu6); }, x, 2), x, {0, 0, 0, 1, 2});
  const Tensor elu = output([](Sequential& s) { s.append<ELU>(2); }, x, 2);
  EXPECT_NEAR(elu.data<float>()[1], 2 * std::expm1(-1.0), 1e-6);
  EXPECT_EQ(elu.data<float>()[4], 2);
  const Tensor plus = output([](Sequential& s) { s.append<Softplus>(2, 3); }, x, 2);
  EXPECT_NEAR(plus.data<float>()[3], std::log1p(std::exp(2.0)) / 2, 1e-6);
  EXPECT_EQ(plus.data<float>()[4], 2) << "beyond the threshold";
}

TEST(ShapeLayers, RefusePaddingOfOtherAxes) { EXPECT_THROW(ZeroPad2d(std::vector<std::int64_t>{1, 2}), Error); }

}  // namespace
}  // namespace lockstep::nn

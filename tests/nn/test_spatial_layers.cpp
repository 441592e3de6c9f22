// Convolutions, pooling and enlarging as modules: parameters as PyTorch's, configurations, and results that follow from
// the ops' tests.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/nn/layers.h"
#include "lockstep/nn/sequential.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/plan/compiled_model.h"

namespace lockstep::nn {
namespace {

struct Layers : Module {
  Child<Conv1d> a{this, "a", {.in = 4, .out = 6, .kernel = 5, .groups = 2}};
  Child<Conv2d> b{this, "b", {.in = 3, .out = 4, .kernel = {3, 5}, .bias = false}};
  Child<Conv3d> c{this, "c", {.in = 2, .out = 3, .kernel = {1, 3, 5}, .padding = {0, 1, 2}}};
  Child<ConvTranspose1d> d{this, "d", {.in = 4, .out = 6, .kernel = 3}};
  Child<ConvTranspose2d> e{this, "e", {.in = 4, .out = 6, .kernel = 2, .stride = 2, .groups = 2}};
  Child<ConvTranspose3d> f{this, "f", {.in = 2, .out = 3, .kernel = {2, 1, 3}, .bias = false}};
  Child<MaxPool3d> g{this, "g", {.kernel = 2}};
  Child<Upsample> h{this, "h", {.scale = {2}, .mode = Interpolation::Linear}};
};

TEST(SpatialLayers, NameAndShapeParametersAsPyTorchDoes) {
  const Layers layers;
  std::vector<std::string> names;
  for (const NamedParameter& p : layers.named_parameters()) names.push_back(p.name + " " + p.parameter->shape.str());
  EXPECT_EQ(names,
            (std::vector<std::string>{"a.weight (6, 2, 5)", "a.bias (6)", "b.weight (4, 3, 3, 5)",
                                      "c.weight (3, 2, 1, 3, 5)", "c.bias (3)", "d.weight (4, 6, 3)", "d.bias (6)",
                                      "e.weight (4, 3, 2, 2)", "e.bias (6)", "f.weight (2, 3, 2, 1, 3)"}));
}

// PyTorch counts the second dimension of every weight as inputs: uniform within 1 / sqrt(that times the filter).
TEST(SpatialLayers, InitialValuesFillPyTorchsRange) {
  const Layers layers;
  for (const NamedParameter& p : layers.named_parameters()) {
    if (p.parameter->role == Role::Bias) continue;
    RandomStream random(1, 2);
    std::vector<double> values(4000);
    p.parameter->initialize(p.parameter->shape, values, random);
    const double bound = 1 / std::sqrt(static_cast<double>(p.parameter->shape.tail().elements()));
    double most = 0;
    for (const double v : values) most = std::max(most, std::abs(v));
    EXPECT_LE(most, bound) << p.name;
    EXPECT_GE(most, 0.99 * bound) << p.name;
  }
}

TEST(SpatialLayers, GiveTheShapesOfPyTorchsFormulas) {
  const Layers layers;
  Graph graph(Mode::Train, DType::F32);
  auto value = [&, count = 0](Shape shape) mutable {
    return graph.input(formatted("input{}", count++), {std::move(shape), DType::F32});
  };
  EXPECT_EQ(layers.a(value({2, 4, 9})).shape(), (Shape{2, 6, 5}));
  EXPECT_EQ(layers.b(value({2, 3, 9, 9})).shape(), (Shape{2, 4, 7, 5}));
  EXPECT_EQ(layers.c(value({2, 2, 4, 5, 6})).shape(), (Shape{2, 3, 4, 5, 6}));
  EXPECT_EQ(layers.d(value({2, 4, 9})).shape(), (Shape{2, 6, 11}));
  EXPECT_EQ(layers.e(value({2, 4, 3, 4})).shape(), (Shape{2, 6, 6, 8}));
  EXPECT_EQ(layers.f(value({2, 2, 3, 4, 5})).shape(), (Shape{2, 3, 4, 4, 7}));
  EXPECT_EQ(layers.g(value({2, 2, 3, 4, 5})).shape(), (Shape{2, 2, 1, 2, 2}));
  EXPECT_EQ(layers.h(value({2, 2, 3, 4, 5})).shape(), (Shape{2, 2, 6, 8, 10}));
  const Value image = value({2, 3, 8, 6});
  EXPECT_EQ(MaxPool2d(MaxPool2d::Config{.kernel = 3, .stride = 1, .padding = 1})(image).shape(), (Shape{2, 3, 8, 6}));
  EXPECT_EQ(AvgPool2d(AvgPool2d::Config{.kernel = {2, 3}})(image).shape(), (Shape{2, 3, 4, 2}));
  EXPECT_EQ(AvgPool1d(AvgPool1d::Config{.kernel = 4, .stride = 3})(value({1, 2, 12})).shape(), (Shape{1, 2, 3}));
  EXPECT_EQ(AdaptiveAvgPool2d(AdaptiveAvgPool2d::Config{.size = {3, 2}})(image).shape(), (Shape{2, 3, 3, 2}));
  EXPECT_EQ(AdaptiveAvgPool1d(AdaptiveAvgPool1d::Config{.size = 1})(value({1, 2, 12})).shape(), (Shape{1, 2, 1}));
  EXPECT_EQ(max_pool(value({1, 2, 4, 4, 4}), {.kernel = 2}).shape(), (Shape{1, 2, 2, 2, 2}));
  EXPECT_EQ(upsample(image, {.scale = {1.5}}).shape(), (Shape{2, 3, 12, 9}));
  EXPECT_EQ(upsample(image, {.size = {5}}).shape(), (Shape{2, 3, 5, 5}));
}

// A filter that picks the left neighbour shows what lies beside the first element.
TEST(SpatialLayers, PadByTheModeThatTheyAreGiven) {
  struct Net : Module {
    explicit Net(PaddingMode mode)
        : conv(this, "conv",
               Conv1dConfig{.in = 1,
                            .out = 1,
                            .kernel = 3,
                            .padding = 1,
                            .bias = false,
                            .padding_mode = mode,
                            .weight_init = [](const Shape&, std::span<double> values, RandomStream&) {
                              std::ranges::copy(std::array{1.0, 0.0, 0.0}, values.begin());
                            }}) {}
    Child<Conv1d> conv;
  };
  const std::pair<PaddingMode, float> modes[] = {{PaddingMode::Zeros, 0.0F},
                                                 {PaddingMode::Reflect, 2.0F},
                                                 {PaddingMode::Replicate, 1.0F},
                                                 {PaddingMode::Circular, 4.0F}};
  for (const auto& [mode, left] : modes) {
    const Net net(mode);
    plan::CompiledModel model(net.named_parameters(),
                              [&net](const plan::Inputs& in) { return plan::Traced{.prediction = net.conv(in["x"])}; });
    plan::Plan& plan = model.plan(Mode::Eval, {{"x", {Shape{1, 1, 4}, DType::F32}}});
    std::ranges::copy(std::array{1.0F, 2.0F, 3.0F, 4.0F}, static_cast<float*>(plan.input("x")));
    plan.run();
    const Tensor y = plan.prediction();
    EXPECT_EQ(y.data<float>()[0], left);
    EXPECT_EQ(y.data<float>()[1], 1.0F);
    EXPECT_EQ(y.data<float>()[3], 3.0F);
  }
}

template <class F>
void expect_error(const std::string& text, const F& f) {
  try {
    f();
    ADD_FAILURE() << "no error; expected '" << text << "'";
  } catch (const Error& e) {
    EXPECT_EQ(e.what(), text);
  }
}

TEST(SpatialLayers, SayWhatDoesNotFit) {
  Graph graph(Mode::Train, DType::F32);
  auto value = [&, count = 0](Shape shape) mutable {
    return graph.input(formatted("input{}", count++), {std::move(shape), DType::F32});
  };
  const Value signal = value({2, 4, 9}), image = value({2, 4, 5, 6}), volume = value({2, 4, 3, 5, 6});
  expect_error("[convolution] 4 input and 6 output channels do not divide into 4 groups",
               [] { Conv3d(Conv3d::Config{.in = 4, .out = 6, .groups = 4}); });
  const Graph::Scope scope(graph, "net.up");
  expect_error("[conv1d] net.up: input is (2, 4, 5, 6), expected (samples, channels, length)", [&] {
    convolution(image, value({3, 4, 3}));
  });
  expect_error("[conv3d] net.up: weight is (3, 4, 3, 3), expected (out, in / groups, depth, height, width)", [&] {
    convolution(volume, value({3, 4, 3, 3}), {}, {.axes = {{}, {}, {}}});
  });
  expect_error("[conv3d] net.up: padded input 3x5x6 is smaller than the filter's 4x1x1", [&] {
    convolution(volume, value({3, 4, 4, 1, 1}));
  });
  expect_error("[convolution] options have 0 axes, expected 1 to 3", [&] { convolution(image, value({3, 4})); });
  expect_error("[conv_transpose2d] net.up: input has 4 channels, weight expects 5", [&] {
    conv_transpose(image, value({5, 2, 3, 3}));
  });
  expect_error("[conv_transpose2d] net.up: bias is f32(4), expected f32(2)", [&] {
    conv_transpose(image, value({4, 2, 3, 3}), value({4}));
  });
  expect_error("[conv_transpose1d] net.up: output padding is 2, expected 0 or more, and less than the stride 2", [&] {
    conv_transpose(signal, value({4, 2, 3}), {}, {.convolution = {.axes = {{2}}}, .output_padding = {2}});
  });
  expect_error("[conv_transpose1d] net.up: 9 elements become -1 along an axis, expected at least 1", [&] {
    conv_transpose(signal, value({4, 2, 3}), {}, {.convolution = {.axes = {{1, 6}}}});
  });
  expect_error("[conv_transpose3d] net.up: 4 input channels do not divide into 3 groups", [&] {
    conv_transpose(volume, value({4, 2, 1, 1, 1}), {}, {.convolution = {.axes = {{}, {}, {}}, .groups = 3}});
  });
  expect_error("[max_pool3d] net.up: input 3x5x6 is smaller than the window 4x4x4",
               [&] { max_pool(volume, {.kernel = 4}); });
  expect_error("[max_pool1d] net.up: input is (2, 4, 5, 6), expected (samples, channels, length)",
               [&] { MaxPool1d(MaxPool1d::Config{.kernel = 2})(image); });
  expect_error("[upsample] net.up: options give neither size nor scale, expected either a size or a scale",
               [&] { upsample(image, {}); });
  expect_error("[upsample] net.up: options give 3 numbers, expected 1 or one for each of 2 axes", [&] {
    upsample(image, {.size = {1, 2, 3}});
  });
  expect_error("[upsample] net.up: corners are aligned in mode nearest, expected mode linear",
               [&] { upsample(image, {.size = {3}, .align_corners = true}); });
  expect_error("[upsample] net.up: 5 elements become 0 along an axis, expected at least 1 of each",
               [&] { upsample(image, {.size = {0}}); });
  expect_error("[adaptive_average_pool] net.up: input is (2, 4), expected (samples, channels) and 1 to 3 spatial axes",
               [&] {
                 adaptive_average_pool(value({2, 4}), {1});
               });
  expect_error("[pad_spatial] net.up: reflect padding of 5 elements by 5, expected at most 4", [&] {
    pad_spatial(image, {5, 0}, PaddingMode::Reflect);
  });
  expect_error("[pad_spatial] net.up: circular padding of 5 elements by 6, expected at most 5", [&] {
    pad_spatial(image, {6, 0}, PaddingMode::Circular);
  });
  expect_error("[pad_spatial] net.up: padding is -1, expected 0 or more", [&] {
    pad_spatial(image, {0, -1}, PaddingMode::Zeros);
  });
}

}  // namespace
}  // namespace lockstep::nn

// Every kernel of every set for convolutions and pooling over one and three axes, and for resampling, against f64; and
// that oneDNN has fast ones for the shapes that models are made of.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lockstep/ops/convolution.h"
#include "lockstep/ops/pool.h"
#include "lockstep/ops/resample.h"
#include "tests/kernels/sweep.h"

namespace lockstep::sweep {
namespace {

struct SpatialConvolution {
  Shape x, w;
  ConvolutionOptions options;
  bool bias = false;
  Epilogue epilogue = {};
};

struct Directions {
  std::vector<std::string> forward, data, weights;  // implementations seen
};

Directions expect_spatial_convolution(const SpatialConvolution& c) {
  const Type x{c.x, DType::F64}, w{c.w, DType::F64};
  const std::vector<Type> types{x, w};
  const Shape y = ConvolutionOp(c.options).infer("test", types)[0].shape;
  const std::string name = c.x.str() + " * " + c.w.str() + " " + ConvolutionOp(c.options).attributes();
  const double window = static_cast<double>(c.w.tail().tail().elements());
  const double taps = static_cast<double>(c.w[1]) * window;
  const double filters = static_cast<double>(c.w[0] / c.options.groups) * window;
  Case forward{.name = "forward " + name,
               .op = std::make_shared<ConvolutionOp>(c.options, c.epilogue),
               .inputs = list(random_values(c.x, 1), random_values(c.w, 2)),
               .activation = {true, false},
               .tolerance = {taps + 3}};
  if (c.bias) forward.inputs.push_back(random_values({c.w[0]}, 3)), forward.activation.push_back(false);
  if (c.epilogue.residual) forward.inputs.push_back(random_values(y, 4)), forward.activation.push_back(true);
  Directions seen;
  seen.forward = expect_offers_agree(forward);
  seen.data = expect_offers_agree({.name = "backward data " + name,
                                   .op = std::make_shared<ConvolutionBackwardDataOp>(c.options, c.x),
                                   .inputs = list(random_values(y, 5), random_values(c.w, 2)),
                                   .activation = {true, false},
                                   .tolerance = {filters + 2}});
  seen.weights = expect_offers_agree({.name = "backward weights " + name,
                                      .op = std::make_shared<ConvolutionBackwardWeightsOp>(c.options, c.w, c.bias),
                                      .inputs = list(random_values(c.x, 1), random_values(y, 5)),
                                      .activation = {true, true},
                                      .tolerance = {static_cast<double>(y.elements() / y[1]) + 2}});
  return seen;
}

ConvolutionOptions uniform(std::size_t axes, ConvolutionAxis axis, std::int64_t groups = 1) {
  return {.axes = std::vector<ConvolutionAxis>(axes, axis), .groups = groups};
}

TEST(KernelSets, ConvolutionsOverOneAxis) {
  for (const std::int64_t in : {1, 3, 16, 17}) {
    for (const std::int64_t out : {5, 32}) {
      for (const std::int64_t stride : {1, 2}) {
        expect_spatial_convolution({.x = {2, in, 13},
                                    .w = {out, in, 3},
                                    .options = uniform(1, {.stride = stride, .padding = 1}),
                                    .bias = in % 2 == 0});
      }
    }
  }
  expect_spatial_convolution(
      {.x = {2, 16, 21}, .w = {24, 16, 5}, .options = uniform(1, {.padding = 4, .dilation = 2})});
  expect_spatial_convolution(
      {.x = {2, 12, 9}, .w = {24, 4, 3}, .options = uniform(1, {.padding = 1}, 3), .bias = true});
  expect_spatial_convolution(
      {.x = {2, 32, 9}, .w = {32, 1, 3}, .options = uniform(1, {.padding = 1}, 32), .bias = true});
  expect_spatial_convolution(
      {.x = {2, 17, 8}, .w = {17, 17, 3}, .options = uniform(1, {.padding = 1}), .epilogue = {.relu = true}});
}

TEST(KernelSets, ConvolutionsOverThreeAxes) {
  for (const std::int64_t in : {1, 3, 16, 17}) {
    for (const std::int64_t out : {5, 32}) {
      for (const std::int64_t stride : {1, 2}) {
        expect_spatial_convolution({.x = {2, in, 5, 4, 6},
                                    .w = {out, in, 3, 3, 3},
                                    .options = uniform(3, {.stride = stride, .padding = 1}),
                                    .bias = in % 2 == 0});
      }
    }
  }
  expect_spatial_convolution({.x = {2, 16, 4, 5, 3}, .w = {32, 16, 1, 1, 1}, .options = uniform(3, {}), .bias = true});
  expect_spatial_convolution(
      {.x = {1, 16, 6, 6, 7}, .w = {17, 16, 3, 2, 3}, .options = {.axes = {{1, 2, 2}, {2, 0, 1}, {1, 1, 3}}}});
  expect_spatial_convolution(
      {.x = {2, 32, 4, 4, 5}, .w = {32, 16, 3, 3, 3}, .options = uniform(3, {.padding = 1}, 2), .bias = true});
  expect_spatial_convolution({.x = {2, 17, 4, 4, 5}, .w = {17, 1, 3, 3, 3}, .options = uniform(3, {.padding = 1}, 17)});
  expect_spatial_convolution({.x = {2, 17, 3, 4, 5},
                              .w = {17, 17, 3, 3, 3},
                              .options = uniform(3, {.padding = 1}),
                              .bias = true,
                              .epilogue = {.residual = true, .relu = true}});
}

// The shapes of a generator and of a U-Net: stride 2, and sizes that leave a rest.
TEST(KernelSets, ConvolutionsThatAreTransposed) {
  expect_spatial_convolution({.x = {2, 16, 8, 10}, .w = {32, 16, 2, 2}, .options = uniform(2, {.stride = 2})});
  expect_spatial_convolution(
      {.x = {2, 16, 8, 6}, .w = {32, 16, 4, 4}, .options = uniform(2, {.stride = 2, .padding = 1})});
  expect_spatial_convolution({.x = {2, 16, 4, 6, 8}, .w = {17, 16, 2, 2, 2}, .options = uniform(3, {.stride = 2})});
  expect_spatial_convolution(
      {.x = {2, 3, 10, 9}, .w = {16, 3, 3, 3}, .options = uniform(2, {.stride = 2, .padding = 1})});
}

bool has_jit(const std::vector<std::string>& seen) {
  return std::ranges::any_of(seen, [](const std::string& n) { return n.starts_with("jit") || n.starts_with("brg"); });
}

TEST(KernelSets, OneDnnHasFastKernelsForVolumesSignalsAndDepthwiseFilters) {
  if (!kernels::has_onednn()) GTEST_SKIP() << "built without oneDNN";
  const SpatialConvolution cases[] = {
      {.x = {2, 32, 64}, .w = {32, 32, 3}, .options = uniform(1, {.padding = 1})},
      {.x = {1, 32, 8, 8, 8}, .w = {32, 32, 3, 3, 3}, .options = uniform(3, {.padding = 1})},
      {.x = {2, 32, 12, 12}, .w = {32, 1, 3, 3}, .options = uniform(2, {.padding = 1}, 32)},
      {.x = {2, 96, 12, 12}, .w = {96, 1, 3, 3}, .options = uniform(2, {.stride = 2, .padding = 1}, 96)},
      {.x = {2, 24, 9, 9}, .w = {24, 1, 3, 3}, .options = uniform(2, {.padding = 1}, 24)},
  };
  for (const SpatialConvolution& c : cases) {
    SCOPED_TRACE(c.x.str() + " * " + c.w.str());
    const Directions seen = expect_spatial_convolution(c);
    EXPECT_TRUE(has_jit(seen.forward));
    EXPECT_TRUE(has_jit(seen.data));
#if defined(__aarch64__)  // oneDNN's gradient of filters per channel is wrong there, so it is not offered
    EXPECT_EQ(has_jit(seen.weights), c.options.groups == 1);
#else
    EXPECT_TRUE(has_jit(seen.weights));
#endif
  }
}

struct Pooling {
  Shape x;
  PoolOptions options;
};

std::vector<Pooling> poolings(std::int64_t channels) {
  const PoolAxis stem{.kernel = 3, .stride = 2, .padding = 1};
  return {{{2, channels, 9}, {.axes = {{}}}},
          {{2, channels, 10}, {.axes = {stem}, .ceil_mode = true}},
          {{2, channels, 10}, {.axes = {stem}, .count_include_pad = false}},
          {{2, channels, 4, 5, 6}, {.axes = {{}, {}, {}}}},
          {{2, channels, 5, 6, 7}, {.axes = {stem, stem, stem}}},
          {{2, channels, 5, 6, 7}, {.axes = {stem, stem, stem}, .ceil_mode = true, .count_include_pad = false}},
          {{2, channels, 4, 6, 5}, {.axes = {{1, 1}, {3, 1, 1}, {2, 3, 1}}}},
          {{2, channels, 3, 4, 5}, {.axes = {{3, 3}, {4, 4}, {5, 5}}}}};
}

TEST(KernelSets, PoolingOverOneAndThreeAxes) {
  for (const std::int64_t channels : {3, 16, 17}) {
    for (const auto& [x, options] : poolings(channels)) {
      const PoolOp described(Pool::Max, options);
      double window = 1;
      for (const PoolAxis& a : options.axes) window *= static_cast<double>(a.kernel);
      const std::string name = x.str() + " " + described.attributes();
      Case most{"max " + name, std::make_shared<PoolOp>(Pool::Max, options), list(random_values(x, 1)), {true}, {0}};
      for (double& v : most.inputs[0].data<double>()) v = std::round(v * 3);  // many ties
      expect_offers_agree(most);
      std::vector<Tensor> made = reference(most);
      const Shape y = made[0].shape();
      expect_offers_agree({"gradient of max " + name,
                           std::make_shared<PoolGradientOp>(Pool::Max, options, x),
                           list(random_values(y, 2), std::move(made[1])),
                           {true, true},
                           {window}});
      expect_offers_agree({"mean " + name,
                           std::make_shared<PoolOp>(Pool::Average, options),
                           list(random_values(x, 1)),
                           {true},
                           {window + 2}});
      expect_offers_agree({"gradient of mean " + name,
                           std::make_shared<PoolGradientOp>(Pool::Average, options, x),
                           list(random_values(y, 2)),
                           {true},
                           {window + 2}});
    }
  }
}

TEST(KernelSets, Resampling) {
  for (const std::int64_t channels : {3, 16, 17}) {
    const std::vector<std::pair<Shape, std::vector<AxisMap>>> cases{
        {{2, channels, 7}, {AxisMap::linear(7, 12, false)}},
        {{2, channels, 4, 5}, {AxisMap::nearest(4, 8), AxisMap::nearest(5, 10)}},
        {{2, channels, 4, 5}, {AxisMap::linear(4, 7, true), AxisMap::linear(5, 9, false)}},
        {{2, channels, 3, 4, 5}, {AxisMap::linear(3, 6, false), AxisMap::linear(4, 8, false), AxisMap::area(5, 3)}}};
    for (const auto& [x, maps] : cases) {
      std::vector<AxisMap> transposed;
      Shape y = x;
      for (std::size_t i = 0; i < maps.size(); ++i) {
        transposed.push_back(maps[i].transposed());
        y[static_cast<int>(i) + 2] = maps[i].out();
      }
      // At most four taps along an axis, whose weights were rounded and multiplied.
      expect_offers_agree(
          {"resample " + x.str(), std::make_shared<ResampleOp>(maps, "test"), list(random_values(x, 1)), {true}, {80}});
      expect_offers_agree({"resample back to " + x.str(),
                           std::make_shared<ResampleOp>(transposed, "test"),
                           list(random_values(y, 2)),
                           {true},
                           {80}});
    }
  }
}

}  // namespace
}  // namespace lockstep::sweep

// Every convolution of every set against f64, in all three directions: odd sizes, strides, groups, dilation, channels
// that fill no block, epilogues.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "lockstep/kernels/native/native_kernels.h"
#include "lockstep/ops/convolution.h"
#include "tests/kernels/sweep.h"

namespace lockstep::sweep {
namespace {

// Winograd's transforms amplify rounding: against f64 its largest errors were measured at up to 10 times those of
// direct sums, which stay below their bound by the square root of the number of summands or so.
double winograd_factor(const std::string& implementation) {
  return implementation.find("wino") != std::string::npos ? 10 : 1;
}

struct Convolution {
  std::int64_t batch, in, out, height, width, kernel;
  Conv2dOptions options;
  bool bias = false;
  Epilogue epilogue = {};
};

std::vector<std::string> expect_convolution(const Convolution& c) {
  const Conv2dOptions& o = c.options;
  const std::string name = formatted("{}x{}x{}x{} -> {} kernel {} stride {} dilation {} groups {}", c.batch, c.in,
                                     c.height, c.width, c.out, c.kernel, o.stride_h, o.dilation_h, o.groups);
  const Shape x{c.batch, c.in, c.height, c.width}, w{c.out, c.in / o.groups, c.kernel, c.kernel};
  const std::vector<Type> types{{x, DType::F64}, {w, DType::F64}};
  const Shape y = ConvolutionOp(o).infer("test", types)[0].shape;
  const double window = static_cast<double>(c.kernel * c.kernel);
  Case forward{.name = "conv2d " + name,
               .op = std::make_shared<ConvolutionOp>(o, c.epilogue),
               .inputs = list(random_values(x, 1), random_values(w, 2)),
               .activation = {true, false},
               .tolerance = {static_cast<double>(w[1]) * window + 3}};
  if (c.bias) forward.inputs.push_back(random_values({c.out}, 3)), forward.activation.push_back(false);
  if (c.epilogue.residual) forward.inputs.push_back(random_values(y, 4)), forward.activation.push_back(true);
  std::vector<std::string> seen = expect_offers_agree(forward, winograd_factor);
  const auto more = [&](const Case& direction) {
    std::ranges::copy(expect_offers_agree(direction, winograd_factor), std::back_inserter(seen));
  };
  const std::int64_t filters_per_group = c.out / o.groups;
  more({.name = "conv2d_backward_data " + name,
        .op = std::make_shared<ConvolutionBackwardDataOp>(o, x),
        .inputs = list(random_values(y, 5), random_values(w, 2)),
        .activation = {true, false},
        .tolerance = {static_cast<double>(filters_per_group) * window + 2}});
  more({.name = "conv2d_backward_weights " + name,
        .op = std::make_shared<ConvolutionBackwardWeightsOp>(o, w, c.bias),
        .inputs = list(random_values(x, 1), random_values(y, 5)),
        .activation = {true, true},
        .tolerance = {static_cast<double>(y[0] * y[2] * y[3]) + 2}});
  return seen;
}

TEST(KernelSets, ConvolutionsOfOddSizes) {
  std::int64_t count = 0;
  for (const std::int64_t in : {3, 16, 17}) {
    for (const std::int64_t out : {5, 32}) {
      for (const std::int64_t kernel : {1, 3, 5}) {
        for (const std::int64_t stride : {1, 2}) {
          ++count;
          const std::int64_t padding = count % 3 == 0 ? 0 : kernel / 2;
          expect_convolution(
              {.batch = count % 2 == 0 ? 1 : 3,
               .in = in,
               .out = out,
               .height = 9,
               .width = 11,
               .kernel = kernel,
               .options = {.stride_h = stride, .stride_w = stride, .padding_h = padding, .padding_w = padding},
               .bias = count % 5 < 2});
        }
      }
    }
  }
}

TEST(KernelSets, ConvolutionsWithGroupsAndDilation) {
  for (const std::int64_t channels : {16, 17}) {
    expect_convolution({.batch = 2,
                        .in = channels,
                        .out = 24,
                        .height = 13,
                        .width = 10,
                        .kernel = 3,
                        .options = {.padding_h = 2, .padding_w = 2, .dilation_h = 2, .dilation_w = 2},
                        .bias = true});
  }
  for (const auto [in, out, groups] : {std::array{16, 16, 16}, {17, 17, 17}, {32, 32, 2}, {12, 24, 3}, {34, 34, 2}}) {
    expect_convolution({.batch = 2,
                        .in = in,
                        .out = out,
                        .height = 8,
                        .width = 7,
                        .kernel = 3,
                        .options = {.stride_h = 2, .padding_h = 1, .padding_w = 1, .groups = groups},
                        .bias = groups == 2});
  }
}

TEST(KernelSets, ConvolutionsWithEpilogues) {
  for (const Epilogue e : {Epilogue{.relu = true}, {.residual = true}, {.residual = true, .relu = true}}) {
    for (const std::int64_t channels : {17, 32}) {
      expect_convolution({.batch = 2,
                          .in = channels,
                          .out = channels,
                          .height = 8,
                          .width = 9,
                          .kernel = 3,
                          .options = {.padding_h = 1, .padding_w = 1},
                          .bias = true,
                          .epilogue = e});
    }
  }
}

TEST(KernelSets, WinogradIsThereUnlessExactIsAskedFor) {
  const Convolution c{.batch = 4,
                      .in = 32,
                      .out = 48,
                      .height = 16,
                      .width = 16,
                      .kernel = 3,
                      .options = {.padding_h = 1, .padding_w = 1}};
  const std::vector<std::string> seen = expect_convolution(c);
  EXPECT_TRUE(any_named(seen, "winograd"));
  const Type x{Shape{4, 32, 16, 16}, DType::F32}, w{Shape{48, 32, 3, 3}, DType::F32};
  const ConvolutionOp op(c.options);
  kernels::KernelRequest request{&op, {x, w}, {{Shape{4, 48, 16, 16}, DType::F32}}};
  request.options.conv_math = kernels::KernelOptions::ConvMath::Exact;
  for (const kernels::KernelOffer& offer : kernels::kernel_registry().offers(request, std::vector<Layout>(2)))
    EXPECT_EQ(offer.implementation.find("wino"), std::string::npos);
}

// Weight gradients of bf16 images are Winograd's first where the processor has no tiles of bf16, with sums of the bias
// or without, over two axes and three.
TEST(KernelSets, WinogradComputesWeightGradientsOfBf16) {
  using ConvMath = kernels::KernelOptions::ConvMath;
  const auto offered = [](const Shape& image, const Shape& weight, bool bias, ConvMath math) {
    ConvolutionOptions options{.axes = std::vector<ConvolutionAxis>(image.rank() - 2)};
    for (ConvolutionAxis& axis : options.axes) axis.padding = 1;
    Shape slopes = image;
    slopes[1] = weight[0];
    const ConvolutionBackwardWeightsOp op(options, weight, bias);
    kernels::KernelRequest request{&op, {{image, DType::BF16}, {slopes, DType::BF16}}, {{weight, DType::F32}}};
    if (bias) request.outputs.push_back({Shape{weight[0]}, DType::F32});
    request.options.conv_math = math;
    const auto offers = kernels::kernel_registry().offers(request, std::vector<Layout>(2));
    return offers.empty() ? std::string() : offers.front().implementation;
  };
  const Shape image{4, 32, 16, 16}, weight{48, 32, 3, 3}, volume{2, 16, 4, 16, 16}, cube{16, 16, 3, 3, 3};
  const bool here = kernels::native_fused() && kernels::native_pairs() != "tiles";
  for (const bool bias : {false, true}) {
    EXPECT_EQ(offered(image, weight, bias, ConvMath::Fast).find("winograd4") != std::string::npos, here);
    EXPECT_EQ(offered(volume, cube, bias, ConvMath::Fast).find("winograd4") != std::string::npos, here);
  }
  for (const ConvMath math : {ConvMath::Accurate, ConvMath::Exact})
    EXPECT_EQ(offered(image, weight, false, math).find("winograd"), std::string::npos);
  EXPECT_EQ(offered({1, 32, 8, 8}, weight, false, ConvMath::Fast).find("winograd"), std::string::npos) << "four tiles";
}

}  // namespace
}  // namespace lockstep::sweep

// Direct convolutions on blocks of channels: every direction against f64, and their bits at every level and number of
// threads.
#include <algorithm>
#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/kernels/native/blocked_convolution.h"
#include "lockstep/ops/convolution.h"
#include "tests/kernels/native_support.h"
#include "tests/kernels/sweep.h"

namespace lockstep::native {
namespace {

using generic::random_values;
using kernels::ConvolutionGeometry;
using kernels::native::BlockedConvolution;
using kernels::native::BlockedDirection;
using kernels::native::BlockedWeightGradient;
using kernels::native::kLanes;

struct Convolution {
  Shape x, w;
  ConvolutionOptions options;
  bool bias = false;
  Epilogue epilogue = {};
};

ConvolutionOptions uniform(std::size_t axes, ConvolutionAxis axis, std::int64_t groups = 1) {
  return {.axes = std::vector<ConvolutionAxis>(axes, axis), .groups = groups};
}

// Images that windows leave rests of; channels that fill no block, one, and more than one call takes; taps that some
// positions or all of them miss; more taps than one call takes; rows and signals longer than one pass.
std::vector<Convolution> convolutions() {
  const ConvolutionAxis same3{1, 1, 1}, half3{2, 1, 1};
  return {
      {{3, 17, 9, 11}, {33, 17, 1, 1}, uniform(2, {}), true, {.residual = true, .relu = true}},
      {{2, 48, 7, 7}, {16, 48, 1, 1}, uniform(2, {2, 0, 1}), true, {.relu = true}},
      {{1, 200, 5, 6}, {40, 200, 1, 1}, uniform(2, {}), false, {.residual = true}},
      {{2, 20, 6, 5}, {24, 20, 1, 1}, uniform(2, {1, 1, 1}), true},
      {{2, 32, 12, 9}, {48, 32, 3, 3}, uniform(2, half3), true, {.relu = true}},
      {{9, 16, 3, 2}, {16, 16, 3, 3}, uniform(2, {3, 2, 1})},
      {{2, 33, 11, 16}, {17, 33, 3, 3}, uniform(2, {1, 2, 2}), true},
      {{2, 16, 10, 8}, {32, 16, 5, 5}, uniform(2, {1, 2, 1})},
      {{1, 16, 12, 30}, {16, 16, 7, 7}, uniform(2, {2, 3, 1}), true},
      {{2, 16, 5, 4}, {16, 16, 3, 3}, uniform(2, {1, 4, 1}), true},
      {{1, 16, 9, 8}, {32, 16, 2, 5}, {.axes = {{2, 1, 3}, {3, 0, 1}}}},
      {{2, 3, 23, 29}, {40, 3, 7, 7}, uniform(2, {2, 3, 1}), true, {.residual = true, .relu = true}},
      {{33, 1, 8, 7}, {16, 1, 5, 5}, uniform(2, {}), true},
      {{2, 6, 9, 40}, {5, 6, 3, 3}, uniform(2, {1, 2, 2}), true},
      {{1, 2, 3, 50}, {17, 2, 1, 35}, {.axes = {{1, 0, 1}, {1, 20, 1}}}},
      {{2, 64, 6, 7}, {96, 32, 3, 3}, uniform(2, half3, 2), true},
      {{2, 48, 5, 5}, {48, 16, 1, 1}, uniform(2, {}, 3), false, {.relu = true}},
      {{2, 40, 9, 13}, {40, 1, 3, 3}, uniform(2, same3, 40), true, {.residual = true, .relu = true}},
      {{1, 16, 11, 8}, {16, 1, 5, 5}, uniform(2, {2, 2, 1}, 16)},
      {{2, 17, 300}, {20, 17, 3}, uniform(1, {1, 2, 2}), true},
      {{3, 1, 45}, {16, 1, 9}, uniform(1, {4, 4, 1}), true},
      {{2, 16, 7}, {16, 1, 3}, uniform(1, half3, 16)},
      {{2, 17, 4, 5, 6}, {16, 17, 3, 3, 3}, uniform(3, same3), true, {.relu = true}},
      {{1, 32, 5, 4, 6}, {16, 32, 2, 2, 2}, uniform(3, {2, 0, 1})},
      {{2, 4, 6, 5, 7}, {16, 4, 3, 3, 3}, uniform(3, {2, 1, 1}), true},
      {{1, 16, 5, 5, 6}, {32, 16, 3, 2, 3}, {.axes = {{1, 2, 2}, {2, 0, 1}, {1, 1, 3}}}},
  };
}

// The result of our offer, after comparison with the f64 kernels: the error of a sum of n products is at most about n
// roundings of its terms' magnitudes.
void expect_close(std::shared_ptr<const Op> op, std::vector<Tensor> inputs, double roundings) {
  sweep::Case c{.name = "", .op = std::move(op), .inputs = std::move(inputs), .activation = {}, .tolerance = {}};
  kernels::KernelRequest request{.op = c.op.get(), .inputs = {}, .outputs = {}};
  for (const Tensor& t : c.inputs) request.inputs.push_back({t.shape(), DType::F32});
  request.outputs = c.op->infer("test", request.inputs);
  const auto offers = kernels::kernel_registry().offers(request, std::vector<Layout>(c.inputs.size()));
  const auto ours = std::ranges::find_if(
      offers, [](const kernels::KernelOffer& o) { return o.implementation.find(":direct") != std::string::npos; });
  ASSERT_NE(ours, offers.end()) << c.op->name();
  EXPECT_TRUE(ours->portable);
  const std::vector<Tensor> want = sweep::reference(c), made = sweep::run_offer(request, *ours, c.inputs).outputs;
  for (Tensor& t : c.inputs) {
    for (double& v : t.data<double>()) v = std::abs(v);
  }
  const std::vector<Tensor> scale = sweep::reference(c);
  ASSERT_EQ(made.size(), want.size());
  for (std::size_t k = 0; k < want.size(); ++k) {
    double worst = 0;
    for (std::size_t i = 0; i < want[k].data<double>().size(); ++i) {
      const double error = std::abs(made[k].data<double>()[i] - want[k].data<double>()[i]);
      const double bound = roundings * 0x1p-24 * scale[k].data<double>()[i] + 1e-38;
      worst = std::isnan(error) ? 1e9 : std::max(worst, error / bound);
    }
    EXPECT_LE(worst, 1) << c.op->name() << ", output " << k << ": the largest error, of its bound";
  }
}

std::string text(const Convolution& c) {
  return c.x.str() + " * " + c.w.str() + " " + ConvolutionOp(c.options).attributes();
}

TEST(NativeDirect, AllDirectionsAreSumsOfProducts) {
  using sweep::list;
  for (const Convolution& c : convolutions()) {
    SCOPED_TRACE(text(c));
    const std::vector<Type> types{{c.x, DType::F64}, {c.w, DType::F64}};
    const Shape y = ConvolutionOp(c.options).infer("test", types)[0].shape;
    const auto x = [&] { return sweep::random_values(c.x, 1); };
    const auto w = [&] { return sweep::random_values(c.w, 2); };
    const auto dy = [&] { return sweep::random_values(y, 5); };
    const double taps = static_cast<double>(c.w.elements() / c.w[0]);
    std::vector<Tensor> inputs = list(x(), w());
    if (c.bias) inputs.push_back(sweep::random_values({c.w[0]}, 3));
    if (c.epilogue.residual) inputs.push_back(sweep::random_values(y, 4));
    expect_close(std::make_shared<ConvolutionOp>(c.options, c.epilogue), std::move(inputs), taps + 3);
    expect_close(std::make_shared<ConvolutionBackwardDataOp>(c.options, c.x), list(dy(), w()),
                 static_cast<double>(c.w.elements() / c.w[1] / c.options.groups) + 2);
    expect_close(std::make_shared<ConvolutionBackwardWeightsOp>(c.options, c.w, c.bias), list(x(), dy()),
                 static_cast<double>(y.elements() / y[1]) + 2);
  }
}

// Elements of an activation in blocks, of the weights, and of what one sample of a plain x has.
struct DirectSizes {
  explicit DirectSizes(const ConvolutionGeometry& g) {
    const auto blocks = [](std::int64_t channels) { return (channels + kLanes - 1) / kLanes * kLanes; };
    const std::int64_t in = g.batch * g.in_d * g.in_h * g.in_w;
    x = in * blocks(g.in_channels);
    plain_x = in * g.in_channels;
    y = g.batch * g.out_d() * g.out_h() * g.out_w() * blocks(g.out_channels);
    const std::int64_t taps = g.kernel_d * g.kernel_h * g.kernel_w;
    w = taps * blocks(g.out_channels) * blocks(g.in_channels / g.groups);
  }
  std::int64_t x, plain_x, y, w;
};

// All that the three directions write, for arrays of random numbers without any slack, which a sanitizer watches.
std::vector<float> all_directions(const ConvolutionGeometry& g, const kernels::NativeKernels& kernels) {
  const kernels::native::BlockedChannels channels(g);
  const DirectSizes n(g);
  const auto x = random_values<float>(channels.plain ? n.plain_x : n.x, 1), y = random_values<float>(n.y, 2);
  const auto bias = random_values<float>(g.out_channels, 4);
  std::vector<float> written;
  const auto keep = [&](const std::vector<float>& values) {
    written.insert(written.end(), values.begin(), values.end());
  };
  const auto scratch = [](std::size_t bytes) { return blank<float>(static_cast<std::int64_t>(bytes / sizeof(float))); };
  {
    const BlockedConvolution forward(g, BlockedDirection::Forward, kernels);
    const auto w = random_values<float>(channels.weight_elements(), 3);
    auto made = blank<float>(n.y), workspace = scratch(forward.workspace_bytes());
    forward.run({.x = x.data(),
                 .w = w.data(),
                 .bias = bias.data(),
                 .residual = y.data(),
                 .relu = true,
                 .y = made.data(),
                 .workspace = workspace.data()});
    keep(made);
  }
  {
    const BlockedConvolution backward(g, BlockedDirection::BackwardData, kernels);
    const auto w = random_values<float>(channels.depthwise ? channels.weight_elements() : n.w, 3);
    auto made = blank<float>(n.x);
    backward.run({.x = y.data(), .w = w.data(), .y = made.data()});
    keep(made);
  }
  const BlockedWeightGradient gradient(g, kernels);
  auto dw = blank<float>(channels.weight_elements()), dbias = blank<float>(g.out_channels),
       workspace = scratch(gradient.workspace_bytes());
  gradient.run({.x = x.data(), .dy = y.data(), .dw = dw.data(), .dbias = dbias.data(), .workspace = workspace.data()});
  keep(dw);
  keep(dbias);
  return written;
}

TEST(NativeDirect, LevelsAndThreadsChangeNoBit) {
  for (const Convolution& c : convolutions()) {
    SCOPED_TRACE(text(c));
    const ConvolutionGeometry g = kernels::convolution_geometry(c.options, c.x, c.w);
    std::vector<float> first;
    int threads = 0;
    for_levels([&](const kernels::NativeKernels& kernels) {
      const generic::Threads scope(threads++ % 3 + 1);
      const std::vector<float> made = all_directions(g, kernels);
      EXPECT_TRUE(std::ranges::none_of(made, [](float v) { return std::isnan(v); })) << "not all was written";
      if (first.empty()) first = made;
      EXPECT_TRUE(generic::same_bits(made, first));
    });
    for (int n = 1; n <= 3; ++n) {
      const generic::Threads scope(n);
      EXPECT_TRUE(generic::same_bits(all_directions(g, kernels::native_kernels()), first)) << n << " threads";
    }
  }
}

TEST(NativeDirect, LargeOnesAreSharedOut) {  // so large that units and parts of the batch differ
  const ConvolutionGeometry g{.batch = 5,
                              .in_channels = 160,
                              .in_h = 20,
                              .in_w = 20,
                              .out_channels = 288,
                              .kernel_h = 1,
                              .kernel_w = 1,
                              .stride_h = 2,
                              .stride_w = 2};
  generic::expect_thread_invariant([&] { return all_directions(g, kernels::native_kernels()); });
}

TEST(NativeDirect, RefusesGroupsThatFillNoBlocks) {
  ConvolutionGeometry g{
      .batch = 1, .in_channels = 32, .in_h = 8, .in_w = 8, .out_channels = 32, .kernel_h = 3, .kernel_w = 3};
  g.groups = 2;
  EXPECT_TRUE(kernels::native::supports_blocked(g));
  g.groups = 4;
  EXPECT_FALSE(kernels::native::supports_blocked(g));
  EXPECT_THROW(BlockedConvolution(g, BlockedDirection::Forward), Error);
  EXPECT_THROW(BlockedWeightGradient{g}, Error);
  g.groups = 1;
  g.kernel_h = 9;  // than which the image is smaller
  EXPECT_FALSE(kernels::native::supports_blocked(g));
}

}  // namespace
}  // namespace lockstep::native

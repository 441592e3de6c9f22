// Winograd's convolutions against sums in f64, their bits at every level and number of threads.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "lockstep/core/error.h"
#include "lockstep/core/parallel_for.h"
#include "tests/kernels/winograd_support.h"

namespace lockstep::native {
namespace {

using generic::random_values;
using kernels::native::WinogradGradient;

// Errors of transformed sums mix with those of neighbours: the bound goes with the largest magnitude of a sum.
void expect_near(const std::vector<float>& got, const std::vector<double>& want, double magnitude, int tile) {
  const double bound = (tile == 4 ? 24 : 6) * 0x1p-24 * magnitude;
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_LE(std::abs(static_cast<double>(got[i]) - want[i]), bound)
        << "element " << i << " is " << got[i] << ", expected " << want[i];
}

struct Epilogue {
  bool bias = false, addend = false, relu = false;
};

struct Case {
  ConvolutionGeometry g;
  int tile;
  Epilogue epilogue = {};
};

std::vector<float> forward(const Case& c, const kernels::NativeKernels& kernels) {
  const ConvolutionGeometry& g = c.g;
  const WinogradSizes n(g);
  const Forms form(g);
  const auto x = in_layout(form.x_shape, form.x, random_values<float>(n.x, 1));
  const auto w = in_layout(form.w_shape, form.w, random_values<float>(n.w, 2));
  const auto bias = random_values<float>(g.out_channels, 3);
  auto y = c.epilogue.addend ? in_layout(form.y_shape, form.y, random_values<float>(n.y, 4))
                             : blank<float>(form.y.storage_elements(form.y_shape));
  const WinogradConvolution convolution(g, WinogradConvolution::Direction::Forward, c.tile, kernels);
  Workspace workspace(convolution.workspace_bytes());
  convolution.run({.x = x.data(),
                   .w = w.data(),
                   .bias = c.epilogue.bias ? bias.data() : nullptr,
                   .addend = c.epilogue.addend ? y.data() : nullptr,
                   .relu = c.epilogue.relu,
                   .y = y.data(),
                   .workspace = workspace.data()});
  EXPECT_TRUE(generic::same_bits(y, in_layout(form.y_shape, form.y, in_plain(form.y_shape, form.y, y))))
      << "channels that fill a block up are not 0";
  return in_plain(form.y_shape, form.y, y);
}

TEST(NativeWinograd, ForwardIsTheSumOfProducts) {
  const Epilogue epilogues[] = {{}, {.bias = true}, {.bias = true, .addend = true, .relu = true}};
  std::size_t next = 0;
  for (const ConvolutionGeometry& g : geometries()) {
    for (const int tile : {2, 4}) {
      const Case c{g, tile, epilogues[next++ % 3]};
      SCOPED_TRACE(testing::Message() << g.in_channels << " -> " << g.out_channels << ", " << g.in_d << " x " << g.in_h
                                      << " x " << g.in_w << ", F" << tile << ", bias " << c.epilogue.bias);
      const WinogradSizes n(g);
      const auto x = random_values<float>(n.x, 1), w = random_values<float>(n.w, 2),
                 addend = random_values<float>(n.y, 4);
      const auto bias = random_values<float>(g.out_channels, 3);
      std::vector<double> want(static_cast<std::size_t>(n.y));
      for_rows(g, [&](std::int64_t xi, std::int64_t yi, std::int64_t wi, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i)
          want[yi + i] += static_cast<double>(x[xi + i]) * static_cast<double>(w[wi]);
      });
      for (std::int64_t i = 0; i < n.y; ++i) {
        if (c.epilogue.bias)
          want[i] += static_cast<double>(bias[i / (g.out_d() * g.out_h() * g.out_w()) % g.out_channels]);
        if (c.epilogue.addend) want[i] += static_cast<double>(addend[i]);
        if (c.epilogue.relu) want[i] = std::max(want[i], 0.0);
      }
      std::vector<float> first;
      for_levels([&](const kernels::NativeKernels& kernels) {
        const std::vector<float> y = forward(c, kernels);
        if (first.empty()) {
          first = y;
          expect_near(y, want, static_cast<double>(9 * g.kernel_d * g.in_channels) + 2, tile);
        }
        EXPECT_TRUE(generic::same_bits(y, first)) << "bits differ from the first level's";
      });
    }
  }
}

std::vector<float> backward_data(const Case& c, const kernels::NativeKernels& kernels) {
  const ConvolutionGeometry& g = c.g;
  const WinogradSizes n(g);
  const Forms form(g);
  const auto dy = in_layout(form.y_shape, form.y, random_values<float>(n.y, 1));
  const auto w = in_layout(form.w_shape, form.w, random_values<float>(n.w, 2));
  auto dx = blank<float>(form.x.storage_elements(form.x_shape));
  const WinogradConvolution convolution(g, WinogradConvolution::Direction::BackwardData, c.tile, kernels);
  Workspace workspace(convolution.workspace_bytes());
  convolution.run({.x = dy.data(), .w = w.data(), .y = dx.data(), .workspace = workspace.data()});
  return in_plain(form.x_shape, form.x, dx);
}

TEST(NativeWinograd, BackwardDataIsItsTranspose) {
  for (const ConvolutionGeometry& g : geometries()) {
    for (const int tile : {2, 4}) {
      SCOPED_TRACE(testing::Message() << g.in_channels << " -> " << g.out_channels << ", " << g.in_d << " x " << g.in_h
                                      << " x " << g.in_w << ", F" << tile);
      const WinogradSizes n(g);
      const auto dy = random_values<float>(n.y, 1), w = random_values<float>(n.w, 2);
      std::vector<double> want(static_cast<std::size_t>(n.x));
      for_rows(g, [&](std::int64_t xi, std::int64_t yi, std::int64_t wi, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i)
          want[xi + i] += static_cast<double>(dy[yi + i]) * static_cast<double>(w[wi]);
      });
      std::vector<float> first;
      for_levels([&](const kernels::NativeKernels& kernels) {
        const std::vector<float> dx = backward_data({g, tile}, kernels);
        if (first.empty()) {
          first = dx;
          expect_near(dx, want, static_cast<double>(9 * g.kernel_d * g.out_channels), tile);
        }
        EXPECT_TRUE(generic::same_bits(dx, first)) << "bits differ from the first level's";
      });
    }
  }
}

// dw, and dbias behind it.
std::vector<float> weight_gradient(const Case& c, const kernels::NativeKernels& kernels) {
  const ConvolutionGeometry& g = c.g;
  const WinogradSizes n(g);
  const Forms form(g);
  const auto x = in_layout(form.x_shape, form.x, random_values<float>(n.x, 1));
  const auto dy = in_layout(form.y_shape, form.y, random_values<float>(n.y, 2));
  auto dw = blank<float>(form.w.storage_elements(form.w_shape));
  auto dbias = blank<float>(g.out_channels);
  const WinogradGradient gradient(g, c.tile, kernels);
  Workspace workspace(gradient.workspace_bytes());
  gradient.run({.x = x.data(), .dy = dy.data(), .dw = dw.data(), .dbias = dbias.data(), .workspace = workspace.data()});
  EXPECT_TRUE(generic::same_bits(dw, in_layout(form.w_shape, form.w, in_plain(form.w_shape, form.w, dw))))
      << "channels that fill a block up are not 0";
  auto both = in_plain(form.w_shape, form.w, dw);
  both.insert(both.end(), dbias.begin(), dbias.end());
  return both;
}

TEST(NativeWinograd, WeightAndBiasGradients) {
  for (const ConvolutionGeometry& g : geometries()) {
    for (const int tile : {2, 4}) {
      SCOPED_TRACE(testing::Message() << g.in_channels << " -> " << g.out_channels << ", " << g.in_d << " x " << g.in_h
                                      << " x " << g.in_w << ", F" << tile);
      const WinogradSizes n(g);
      const auto x = random_values<float>(n.x, 1), dy = random_values<float>(n.y, 2);
      std::vector<double> want(static_cast<std::size_t>(n.w + g.out_channels));
      const std::int64_t plane = g.out_d() * g.out_h() * g.out_w();
      for (std::int64_t i = 0; i < n.y; ++i) want[n.w + i / plane % g.out_channels] += static_cast<double>(dy[i]);
      for_rows(g, [&](std::int64_t xi, std::int64_t yi, std::int64_t wi, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i)
          want[wi] += static_cast<double>(x[xi + i]) * static_cast<double>(dy[yi + i]);
      });
      std::vector<float> first;
      for_levels([&](const kernels::NativeKernels& kernels) {
        const std::vector<float> made = weight_gradient({g, tile}, kernels);
        if (first.empty()) {
          first = made;
          expect_near(made, want, static_cast<double>(g.batch * plane), tile);
        }
        EXPECT_TRUE(generic::same_bits(made, first)) << "bits differ from the first level's";
      });
    }
  }
}

// Computed in f32, whatever the type of the images: sums by several parts and by chunks of weights, and a volume.
TEST(NativeWinograd, WeightGradientsOfBf16AreThoseOfTheSameNumbersInF32) {
  using kernels::native::Bf16;
  for (const ConvolutionGeometry& g : {geometry(15, 24, 40, 24, 23, 1, 1), geometry(2, 144, 160, 9, 14, 2, 0),
                                       with_depth(geometry(1, 24, 32, 7, 8, 1, 1), 4, 3, 1)}) {
    const WinogradSizes n(g);
    const Forms form(g);
    const auto rounded = [](const Shape& shape, const Layout& layout, std::int64_t count, std::uint64_t seed) {
      std::vector<Bf16> values;
      for (const float v : in_layout(shape, layout, random_values<float>(count, seed)))
        values.push_back(from_float<Bf16>(v));
      return values;
    };
    const auto x = rounded(form.x_shape, form.x, n.x, 1), dy = rounded(form.y_shape, form.y, n.y, 2);
    const auto gradient = [&](const auto& images, const auto& slopes, const kernels::NativeKernels& kernels) {
      using T = std::remove_cvref_t<decltype(images[0])>;
      auto dw = blank<float>(form.w.storage_elements(form.w_shape) + g.out_channels);
      const WinogradGradient kernel(g, 4, kernels);
      Workspace workspace(kernel.workspace_bytes());
      kernel.run(WinogradGradient::ArraysOf<T>{.x = images.data(),
                                               .dy = slopes.data(),
                                               .dw = dw.data(),
                                               .dbias = dw.data() + form.w.storage_elements(form.w_shape),
                                               .workspace = workspace.data()});
      return dw;
    };
    const auto wide = [](const std::vector<Bf16>& values) {
      std::vector<float> all;
      for (const Bf16 v : values) all.push_back(to_float(v));
      return all;
    };
    for_levels([&](const kernels::NativeKernels& kernels) {
      const auto want = gradient(wide(x), wide(dy), kernels);
      for (const int threads : {1, 2, 3}) {
        const generic::Threads scope(threads);
        EXPECT_TRUE(generic::same_bits(gradient(x, dy, kernels), want)) << threads << " threads";
      }
    });
  }
}

// Stored and streamed weights, one group of tiles and several, several parts of the tiles.
TEST(NativeWinograd, ThreadsChangeNoBit) {
  const kernels::NativeKernels& kernels = kernels::native_kernels();
  for (const Case& c : {Case{geometry(7, 32, 48, 16, 16, 1, 1), 4, {.bias = true, .addend = true}},
                        {geometry(13, 16, 16, 28, 28, 1, 1), 4},
                        {geometry(13, 144, 144, 12, 11, 1, 1), 4, {.bias = true}},
                        {geometry(3, 144, 176, 30, 30, 1, 1), 2},
                        {with_depth(geometry(3, 32, 32, 16, 16, 1, 1), 5, 3, 1), 4},
                        {with_depth(geometry(1, 96, 144, 12, 11, 1, 1), 6, 3, 1), 4}}) {
    const auto with = [&](int threads, const auto& run) {
      const generic::Threads scope(threads);
      return run();
    };
    const auto expect_same = [&](const auto& run) {
      const auto one = with(1, run);
      for (const int threads : {2, 3, 16})
        EXPECT_TRUE(generic::same_bits(with(threads, run), one)) << threads << " threads";
    };
    expect_same([&] { return forward(c, kernels); });
    expect_same([&] { return backward_data(c, kernels); });
    expect_same([&] { return weight_gradient(c, kernels); });
  }
}

// A kernel that was built for three threads runs on one, on five and within another loop of threads.
TEST(NativeWinograd, RunsOnOtherThreadsThanItWasBuiltFor) {
  const ConvolutionGeometry g = geometry(6, 144, 144, 12, 11, 1, 1);
  const Forms form(g);
  const WinogradSizes n(g);
  const auto x = in_layout(form.x_shape, form.x, random_values<float>(n.x, 1));
  const auto w = in_layout(form.w_shape, form.w, random_values<float>(n.w, 2));
  const generic::Threads built(3);
  const WinogradConvolution convolution(g, WinogradConvolution::Direction::Forward, 4);
  const WinogradGradient gradient(g, 4);
  Workspace workspace(std::max(convolution.workspace_bytes(), gradient.workspace_bytes()));
  const auto run = [&] {
    auto y = blank<float>(form.y.storage_elements(form.y_shape));
    auto dw = blank<float>(form.w.storage_elements(form.w_shape));
    convolution.run({.x = x.data(), .w = w.data(), .y = y.data(), .workspace = workspace.data()});
    gradient.run({.x = x.data(), .dy = y.data(), .dw = dw.data(), .workspace = workspace.data()});
    y.insert(y.end(), dw.begin(), dw.end());
    return y;
  };
  const std::vector<float> want = run();
  for (const int threads : {1, 5}) {
    const generic::Threads now(threads);
    EXPECT_TRUE(generic::same_bits(run(), want)) << threads << " threads";
  }
  std::vector<float> within;
  parallel_for(3, std::int64_t{1} << 20, [&](std::int64_t begin, std::int64_t) {
    if (begin == 0) within = run();
  });
  EXPECT_TRUE(generic::same_bits(within, want)) << "within a loop";
}

// Each thread has tiles of its own. On 64 threads they take less than 256 MiB.
TEST(NativeWinograd, ManyThreadsTakeBoundedMemory) {
  const generic::Threads many(64);
  const ConvolutionGeometry g = geometry(256, 512, 512, 7, 7, 1, 1);
  const WinogradConvolution convolution(g, WinogradConvolution::Direction::Forward, 4);
  EXPECT_LE(convolution.workspace_bytes(), std::size_t{256} << 20);
  EXPECT_LE(WinogradGradient(g, 4).workspace_bytes(), std::size_t{256} << 20);
}

// A gradient of many channels goes part by part: over two halves of a batch it is the sum of theirs.
TEST(NativeWinograd, PartsOfWeightGradientsAreAdded) {
  const ConvolutionGeometry both = geometry(16, 144, 144, 12, 11, 1, 1), half = geometry(8, 144, 144, 12, 11, 1, 1);
  const Forms form(both), half_form(half);
  const WinogradSizes n(both);
  const auto x = in_layout(form.x_shape, form.x, random_values<float>(n.x, 1));
  const auto dy = in_layout(form.y_shape, form.y, random_values<float>(n.y, 2));
  for (const int tile : {2}) {
    const auto run = [&](const ConvolutionGeometry& g, std::int64_t part) {
      const WinogradGradient gradient(g, tile);
      Workspace workspace(gradient.workspace_bytes());
      auto dw = blank<float>(form.w.storage_elements(form.w_shape));
      gradient.run({.x = x.data() + part * static_cast<std::int64_t>(x.size()) / 2,
                    .dy = dy.data() + part * static_cast<std::int64_t>(dy.size()) / 2,
                    .dw = dw.data(),
                    .workspace = workspace.data()});
      return dw;
    };
    auto sum = run(half, 0);
    const auto second = run(half, 1);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += second[i];
    EXPECT_TRUE(generic::same_bits(run(both, 0), sum));
  }
}

// Partial sums of weights take memory for 64 parts at most; with 40000 tiles there are 156.
TEST(NativeWinograd, ManyPartsOfAWeightGradientShareTheirMemory) {
  const ConvolutionGeometry g = geometry(4, 16, 16, 200, 200, 1, 1);
  const WinogradGradient gradient(g, 2);
  const auto few = static_cast<double>(WinogradGradient(geometry(2, 16, 16, 200, 200, 1, 1), 2).workspace_bytes());
  EXPECT_LE(static_cast<double>(gradient.workspace_bytes()), 1.01 * few);
  const WinogradSizes n(g);
  const auto x = random_values<float>(n.x, 1), dy = random_values<float>(n.y, 2);
  std::vector<double> want(static_cast<std::size_t>(n.w));
  for_rows(g, [&](std::int64_t xi, std::int64_t yi, std::int64_t wi, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i)
      want[wi] += static_cast<double>(x[xi + i]) * static_cast<double>(dy[yi + i]);
  });
  const Forms form(g);
  const auto x_blocks = in_layout(form.x_shape, form.x, x), dy_blocks = in_layout(form.y_shape, form.y, dy);
  Workspace workspace(gradient.workspace_bytes());
  auto dw = blank<float>(form.w.storage_elements(form.w_shape));
  gradient.run({.x = x_blocks.data(), .dy = dy_blocks.data(), .dw = dw.data(), .workspace = workspace.data()});
  expect_near(in_plain(form.w_shape, form.w, dw), want, 4.0 * 200 * 200, 2);
}

TEST(NativeWinograd, IsOfferedWhereTilesAndSlicesAreFilled) {
  kernels::KernelOptions options{.bits = kernels::KernelOptions::Bits::Portable};  // the same rule at every level
  const auto tile = [&](const ConvolutionGeometry& g) { return kernels::native::winograd_tile(g, options); };
  const ConvolutionGeometry image = geometry(2, 16, 16, 16, 16, 1, 1);
  EXPECT_EQ(tile(image), 4);
  EXPECT_EQ(tile(with_depth(image, 6, 3, 1)), 4);
  EXPECT_EQ(tile(with_depth(image, 2, 3, 1)), 4) << "a third of the slices that a sum reads are zeros";
  EXPECT_EQ(tile(with_depth(image, 1, 3, 1)), 0) << "two thirds";
  EXPECT_EQ(tile(with_depth(geometry(2, 16, 16, 5, 5, 1, 1), 8, 3, 1)), 0) << "39% of the tiles";
  EXPECT_EQ(tile(with_depth(geometry(2, 8, 16, 16, 16, 1, 1), 6, 3, 1)), 0) << "half a block of channels";
  EXPECT_EQ(tile(with_depth(image, 6, 3, 0)), 4);
  options.conv_math = kernels::KernelOptions::ConvMath::Exact;
  EXPECT_EQ(tile(with_depth(image, 6, 3, 1)), 0);
}

TEST(NativeWinograd, RefusesWhatItDoesNotCompute) {
  const ConvolutionGeometry good = geometry(2, 16, 16, 8, 8, 1, 1);
  ASSERT_TRUE(kernels::native::supports_winograd(good));
  const auto refused = [&](auto change) {
    ConvolutionGeometry g = good;
    change(g);
    EXPECT_FALSE(kernels::native::supports_winograd(g));
    EXPECT_EQ(kernels::native::winograd_tile(g, {}), 0);
    EXPECT_THROW(WinogradConvolution(g, WinogradConvolution::Direction::Forward, 4), Error);
    EXPECT_THROW(WinogradConvolution(g, WinogradConvolution::Direction::BackwardData, 4), Error);
    EXPECT_THROW(WinogradGradient(g, 4), Error);
  };
  refused([](ConvolutionGeometry& g) { g.stride_w = 2; });
  refused([](ConvolutionGeometry& g) { g.dilation_h = 2; });
  refused([](ConvolutionGeometry& g) { g.groups = 2; });
  refused([](ConvolutionGeometry& g) { g.padding_w = 3; });
  refused([](ConvolutionGeometry& g) { g.kernel_w = 5; });
  refused([](ConvolutionGeometry& g) { g.in_h = 0, g.padding_h = 0; });
  refused([](ConvolutionGeometry& g) { g.in_d = 4, g.kernel_d = 3, g.padding_d = 3; });
  refused([](ConvolutionGeometry& g) { g.in_d = 4, g.kernel_d = 4; });
  refused([](ConvolutionGeometry& g) { g.in_d = 4, g.kernel_d = 3, g.stride_d = 2; });
  refused([](ConvolutionGeometry& g) { g.in_d = 8, g.kernel_d = 3, g.dilation_d = 2; });
  refused([](ConvolutionGeometry& g) { g.in_d = 1, g.kernel_d = 3; });
  EXPECT_THROW(WinogradGradient(good, 3), Error);
}

}  // namespace
}  // namespace lockstep::native

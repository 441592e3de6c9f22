// Winograd's convolutions against sums in f64, their bits at every level and number of threads.
#include <algorithm>
#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/kernels/native/winograd.h"
#include "tests/kernels/native_support.h"

namespace lockstep::native {
namespace {

using generic::random_values;
using kernels::ConvolutionGeometry;
using kernels::native::kLanes;
using kernels::native::WinogradConvolution;
using kernels::native::WinogradGradient;

ConvolutionGeometry geometry(std::int64_t n, std::int64_t c, std::int64_t f, std::int64_t h, std::int64_t w,
                             std::int64_t ph, std::int64_t pw) {
  return {.batch = n,
          .in_channels = c,
          .in_h = h,
          .in_w = w,
          .out_channels = f,
          .kernel_h = 3,
          .kernel_w = 3,
          .padding_h = ph,
          .padding_w = pw};
}

// Images smaller than a tile, on its end and behind it, every padding, channels within a block, at its end and behind
// it, several chunks of channels, weights that are transformed chunk by chunk.
std::vector<ConvolutionGeometry> geometries() {
  return {geometry(1, 1, 1, 1, 1, 1, 1),     geometry(2, 3, 5, 4, 4, 1, 1),     geometry(1, 16, 17, 5, 9, 1, 0),
          geometry(3, 17, 16, 8, 7, 0, 2),   geometry(2, 40, 24, 13, 6, 2, 1),  geometry(1, 80, 48, 3, 12, 1, 1),
          geometry(5, 16, 16, 12, 11, 1, 1), geometry(1, 160, 136, 6, 5, 1, 1), geometry(2, 1, 40, 3, 3, 0, 0),
          geometry(1, 16, 16, 46, 91, 1, 1), geometry(0, 16, 16, 4, 4, 1, 1)};
}

struct WinogradSizes {
  explicit WinogradSizes(const ConvolutionGeometry& g)
      : x(g.batch * g.in_channels * g.in_h * g.in_w),
        y(g.batch * g.out_channels * g.out_h() * g.out_w()),
        w(g.out_channels * g.in_channels * 9) {}
  std::int64_t x, y, w;
};

// Calls row(x, y, w, n), offsets of a product of n positions in a row, for all products of the convolution.
template <class Row>
void for_rows(const ConvolutionGeometry& g, const Row& row) {
  const std::int64_t oh = g.out_h(), ow = g.out_w();
  for (std::int64_t i = 0; i < g.batch * g.out_channels * g.in_channels * 9; ++i) {
    const std::int64_t tap = i % 9, c = i / 9 % g.in_channels, o = i / 9 / g.in_channels % g.out_channels,
                       n = i / 9 / g.in_channels / g.out_channels;
    const std::int64_t begin = std::max<std::int64_t>(0, g.padding_w - tap % 3);
    const std::int64_t end = std::min(ow, g.in_w + g.padding_w - tap % 3);
    for (std::int64_t p = 0; p < oh; ++p) {
      const std::int64_t h = p + tap / 3 - g.padding_h;
      if (h < 0 || h >= g.in_h || begin >= end) continue;
      row(((n * g.in_channels + c) * g.in_h + h) * g.in_w + begin + tap % 3 - g.padding_w,
          ((n * g.out_channels + o) * oh + p) * ow + begin, (o * g.in_channels + c) * 9 + tap, end - begin);
    }
  }
}

std::vector<float> in_layout(const Shape& shape, const Layout& layout, const std::vector<float>& plain) {
  std::vector<float> values(static_cast<std::size_t>(layout.storage_elements(shape)), 0.0F);
  reorder(shape, DType::F32, {}, plain.data(), layout, values.data());
  return values;
}
std::vector<float> in_plain(const Shape& shape, const Layout& layout, const std::vector<float>& values) {
  std::vector<float> plain(static_cast<std::size_t>(shape.elements()));
  reorder(shape, DType::F32, layout, values.data(), {}, plain.data());
  return plain;
}

struct Forms {
  explicit Forms(const ConvolutionGeometry& g)
      : x_shape{g.batch, g.in_channels, g.in_h, g.in_w},
        y_shape{g.batch, g.out_channels, g.out_h(), g.out_w()},
        w_shape{g.out_channels, g.in_channels, 3, 3},
        x(Layout::channels_blocked(x_shape, kLanes)),
        y(Layout::channels_blocked(y_shape, kLanes)),
        w(kernels::native::winograd_weight_layout(w_shape)) {}
  Shape x_shape, y_shape, w_shape;
  Layout x, y, w;
};

// Errors of transformed sums mix with those of neighbours: the bound goes with the largest magnitude of a sum.
void expect_near(const std::vector<float>& got, const std::vector<double>& want, double magnitude, int tile) {
  const double bound = (tile == 4 ? 24 : 6) * 0x1p-24 * magnitude;
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_LE(std::abs(static_cast<double>(got[i]) - want[i]), bound)
        << "element " << i << " is " << got[i] << ", expected " << want[i];
}

// Memory whose every float is NaN before, and which must not be written behind its end.
class Workspace {
 public:
  explicit Workspace(std::size_t bytes) : values_(blank<float>(static_cast<std::int64_t>(bytes / sizeof(float)) + 17)) {
    values_[bytes / sizeof(float)] = 7;
    end_ = bytes / sizeof(float);
  }
  ~Workspace() { EXPECT_EQ(values_[end_], 7) << "written behind the workspace"; }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  float* data() { return values_.data(); }

 private:
  std::vector<float> values_;
  std::size_t end_;
};

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
      SCOPED_TRACE(testing::Message() << g.in_channels << " -> " << g.out_channels << ", " << g.in_h << " x " << g.in_w
                                      << ", F" << tile << ", bias " << c.epilogue.bias);
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
        if (c.epilogue.bias) want[i] += static_cast<double>(bias[i / (g.out_h() * g.out_w()) % g.out_channels]);
        if (c.epilogue.addend) want[i] += static_cast<double>(addend[i]);
        if (c.epilogue.relu) want[i] = std::max(want[i], 0.0);
      }
      std::vector<float> first;
      for_levels([&](const kernels::NativeKernels& kernels) {
        const std::vector<float> y = forward(c, kernels);
        if (first.empty()) {
          first = y;
          expect_near(y, want, static_cast<double>(9 * g.in_channels) + 2, tile);
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
      SCOPED_TRACE(testing::Message() << g.in_channels << " -> " << g.out_channels << ", " << g.in_h << " x " << g.in_w
                                      << ", F" << tile);
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
          expect_near(dx, want, static_cast<double>(9 * g.out_channels), tile);
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
      SCOPED_TRACE(testing::Message() << g.in_channels << " -> " << g.out_channels << ", " << g.in_h << " x " << g.in_w
                                      << ", F" << tile);
      const WinogradSizes n(g);
      const auto x = random_values<float>(n.x, 1), dy = random_values<float>(n.y, 2);
      std::vector<double> want(static_cast<std::size_t>(n.w + g.out_channels));
      const std::int64_t plane = g.out_h() * g.out_w();
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

// Stored and streamed weights, one group of tiles and several, several parts of the tiles.
TEST(NativeWinograd, ThreadsChangeNoBit) {
  const kernels::NativeKernels& kernels = kernels::native_kernels();
  for (const Case& c : {Case{geometry(7, 32, 48, 16, 16, 1, 1), 4, {.bias = true, .addend = true}},
                        {geometry(13, 16, 16, 28, 28, 1, 1), 4},
                        {geometry(13, 144, 144, 12, 11, 1, 1), 4, {.bias = true}},
                        {geometry(3, 144, 176, 30, 30, 1, 1), 2}}) {
    const auto with = [&](int threads, const auto& run) {
      const generic::Threads scope(threads);
      return run();
    };
    const auto expect_same = [&](const auto& run) {
      const auto one = with(1, run);
      EXPECT_TRUE(generic::same_bits(with(2, run), one));
      EXPECT_TRUE(generic::same_bits(with(3, run), one));
    };
    expect_same([&] { return forward(c, kernels); });
    expect_same([&] { return backward_data(c, kernels); });
    expect_same([&] { return weight_gradient(c, kernels); });
  }
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
  EXPECT_THROW(WinogradGradient(good, 3), Error);
}

}  // namespace
}  // namespace lockstep::native

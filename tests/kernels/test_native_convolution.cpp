#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/kernels/generic/convolution.h"
#include "lockstep/kernels/native/convolution.h"
#include "tests/kernels/native_support.h"

namespace lockstep::native {
namespace {

using generic::Exact;
using generic::random_values;

constexpr auto kForward = kernels::native::DirectConvolution::Direction::Forward;
constexpr auto kBackwardData = kernels::native::DirectConvolution::Direction::BackwardData;

// Rows that end within a vector, on its end and behind it, images smaller than a vector, all paddings, and numbers of
// filters and channels that leave every remainder.
std::vector<kernels::ConvolutionGeometry> geometries() {
  std::vector<kernels::ConvolutionGeometry> all;
  const auto put = [&](std::int64_t n, std::int64_t c, std::int64_t f, std::int64_t h, std::int64_t w, std::int64_t k,
                       std::int64_t p) {
    all.push_back({.batch = n,
                   .in_channels = c,
                   .in_h = h,
                   .in_w = w,
                   .out_channels = f,
                   .kernel_h = k,
                   .kernel_w = k,
                   .padding_h = p,
                   .padding_w = p});
  };
  for (const std::int64_t w : {7, 15, 16, 17, 31, 33, 48}) put(2, 3, 5, 9, w, 3, 1);
  for (std::int64_t k = 1; k <= 7; ++k) put(1, 2, 3, 11, 13, k, k / 2);
  for (std::int64_t p = 0; p < 5; ++p) put(2, 2, 3, 6, 5, 5, p);
  for (std::int64_t f = 1; f <= 17; ++f) put(1, 1 + f % 3, f, 6, 7, 3, 1);
  put(1, 1, 1, 1, 1, 1, 0);
  put(1, 4, 2, 3, 3, 3, 0);
  put(37, 3, 6, 8, 9, 5, 0);  // several parts of the batch
  put(0, 3, 6, 8, 9, 5, 0);
  all.push_back({.batch = 2,
                 .in_channels = 2,
                 .in_h = 5,
                 .in_w = 19,
                 .out_channels = 3,
                 .kernel_h = 2,
                 .kernel_w = 8,
                 .padding_h = 0,
                 .padding_w = 7});
  return all;
}

struct Sizes {
  explicit Sizes(const kernels::ConvolutionGeometry& g)
      : x(g.batch * g.in_channels * g.in_h * g.in_w),
        y(g.batch * g.out_channels * g.out_h() * g.out_w()),
        w(g.out_channels * g.in_channels * g.kernel_h * g.kernel_w) {}
  std::int64_t x, y, w;
};

// Calls term(x, y, w), indices, for every product of the convolution.
template <class Term>
void for_products(const kernels::ConvolutionGeometry& g, const Term& term) {
  for (std::int64_t i = 0; i < g.batch * g.out_channels * g.in_channels; ++i) {
    const std::int64_t c = i % g.in_channels, o = i / g.in_channels % g.out_channels,
                       n = i / g.in_channels / g.out_channels;
    for (std::int64_t p = 0; p < g.out_h() * g.out_w(); ++p) {
      for (std::int64_t t = 0; t < g.kernel_h * g.kernel_w; ++t) {
        const std::int64_t h = p / g.out_w() + t / g.kernel_w - g.padding_h;
        const std::int64_t w = p % g.out_w() + t % g.kernel_w - g.padding_w;
        if (h < 0 || h >= g.in_h || w < 0 || w >= g.in_w) continue;
        term(((n * g.in_channels + c) * g.in_h + h) * g.in_w + w, (n * g.out_channels + o) * g.out_h() * g.out_w() + p,
             (o * g.in_channels + c) * g.kernel_h * g.kernel_w + t);
      }
    }
  }
}

// Scratch space whose every float is NaN before, and which must not be written behind its end.
class Workspace {
 public:
  explicit Workspace(std::size_t bytes) : values_(blank<float>(static_cast<std::int64_t>(bytes / sizeof(float)) + 1)) {
    values_.back() = 7;
  }
  ~Workspace() { EXPECT_EQ(values_.back(), 7) << "written behind the workspace"; }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  float* data() { return values_.data(); }

 private:
  std::vector<float> values_;
};

struct ForwardCase {
  bool bias = false, relu = false;
};

std::vector<float> forward(const kernels::ConvolutionGeometry& g, const ForwardCase& c,
                           const kernels::NativeKernels& kernels) {
  const Sizes n(g);
  const auto x = random_values<float>(n.x, 1), w = random_values<float>(n.w, 2);
  const auto bias = random_values<float>(g.out_channels, 3);
  const kernels::native::DirectConvolution convolution(g, kForward, kernels);
  Workspace workspace(convolution.workspace_bytes());
  auto y = blank<float>(n.y);
  convolution.run({.x = x.data(),
                   .w = w.data(),
                   .bias = c.bias ? bias.data() : nullptr,
                   .relu = c.relu,
                   .y = y.data(),
                   .workspace = workspace.data()});
  return y;
}

TEST(NativeConvolution, ForwardIsTheSumOfProducts) {
  for (const kernels::ConvolutionGeometry& g : geometries()) {
    const Sizes n(g);
    const auto x = random_values<float>(n.x, 1), w = random_values<float>(n.w, 2);
    const auto bias = random_values<float>(g.out_channels, 3);
    for (const ForwardCase& c : {ForwardCase{}, {.bias = true}, {.relu = true}, {.bias = true, .relu = true}}) {
      SCOPED_TRACE(testing::Message() << g.in_channels << " -> " << g.out_channels << ", kernel " << g.kernel_w
                                      << ", width " << g.in_w << ", padding " << g.padding_w << ", bias " << c.bias);
      std::vector<Exact> want(static_cast<std::size_t>(n.y));
      for (std::int64_t i = 0; c.bias && i < n.y; ++i)
        want[i].add(static_cast<double>(bias[i / (g.out_h() * g.out_w()) % g.out_channels]));
      for_products(g, [&](std::int64_t xi, std::int64_t yi, std::int64_t wi) {
        want[yi].add(static_cast<double>(x[xi]) * static_cast<double>(w[wi]));
      });
      for (Exact& e : want) e.value = c.relu ? std::max(e.value, 0.0) : e.value;
      const auto depth = static_cast<double>(g.in_channels * g.kernel_h * g.kernel_w + 2);
      std::vector<float> first;
      for_levels([&](const kernels::NativeKernels& kernels) {
        const std::vector<float> y = forward(g, c, kernels);
        generic::expect_close(y, want, depth);
        if (first.empty()) first = y;
        EXPECT_TRUE(generic::same_bits(y, first)) << "bits differ from the first level's";
      });
    }
  }
}

TEST(NativeConvolution, BackwardDataIsItsTranspose) {
  for (const kernels::ConvolutionGeometry& g : geometries()) {
    const Sizes n(g);
    const auto dy = random_values<float>(n.y, 1), w = random_values<float>(n.w, 2);
    std::vector<Exact> want(static_cast<std::size_t>(n.x));
    for_products(g, [&](std::int64_t xi, std::int64_t yi, std::int64_t wi) {
      want[xi].add(static_cast<double>(dy[yi]) * static_cast<double>(w[wi]));
    });
    std::vector<float> first;
    for_levels([&](const kernels::NativeKernels& kernels) {
      const kernels::native::DirectConvolution convolution(g, kBackwardData, kernels);
      Workspace workspace(convolution.workspace_bytes());
      auto dx = blank<float>(n.x);
      convolution.run({.x = dy.data(), .w = w.data(), .y = dx.data(), .workspace = workspace.data()});
      generic::expect_close(dx, want, static_cast<double>(g.out_channels * g.kernel_h * g.kernel_w + 1));
      if (first.empty()) first = dx;
      EXPECT_TRUE(generic::same_bits(dx, first)) << "bits differ from the first level's";
    });
  }
}

struct Gradients {
  std::vector<float> dw, dbias;
};

Gradients weight_gradient(const kernels::ConvolutionGeometry& g, const kernels::NativeKernels& kernels,
                          bool bias = true) {
  const Sizes n(g);
  const auto x = random_values<float>(n.x, 1), dy = random_values<float>(n.y, 2);
  const kernels::native::DirectWeightGradient gradient(g, kernels);
  Workspace workspace(gradient.workspace_bytes());
  Gradients made{blank<float>(n.w), blank<float>(g.out_channels)};
  gradient.run({.x = x.data(),
                .dy = dy.data(),
                .dw = made.dw.data(),
                .dbias = bias ? made.dbias.data() : nullptr,
                .workspace = workspace.data()});
  return made;
}

TEST(NativeConvolution, WeightAndBiasGradients) {
  for (const kernels::ConvolutionGeometry& g : geometries()) {
    const Sizes n(g);
    const auto x = random_values<float>(n.x, 1), dy = random_values<float>(n.y, 2);
    std::vector<Exact> dw(static_cast<std::size_t>(n.w)), dbias(static_cast<std::size_t>(g.out_channels));
    for_products(g, [&](std::int64_t xi, std::int64_t yi, std::int64_t wi) {
      dw[wi].add(static_cast<double>(x[xi]) * static_cast<double>(dy[yi]));
    });
    const std::int64_t plane = g.out_h() * g.out_w();
    for (std::int64_t i = 0; i < n.y; ++i) dbias[i / plane % g.out_channels].add(static_cast<double>(dy[i]));
    const auto depth = static_cast<double>(g.batch * plane + 1);
    Gradients first;
    for_levels([&](const kernels::NativeKernels& kernels) {
      const Gradients made = weight_gradient(g, kernels);
      if (first.dw.empty()) first = made;
      EXPECT_TRUE(generic::same_bits(made.dw, first.dw) && generic::same_bits(made.dbias, first.dbias))
          << "bits differ from the first level's";
      generic::expect_close(made.dw, dw, depth);
      generic::expect_close(made.dbias, dbias, depth);
      EXPECT_TRUE(generic::same_bits(weight_gradient(g, kernels, false).dw, made.dw));
    });
  }
}

TEST(NativeConvolution, ThreadsChangeNoBit) {
  const kernels::ConvolutionGeometry g{
      .batch = 37, .in_channels = 3, .in_h = 32, .in_w = 32, .out_channels = 6, .kernel_h = 5, .kernel_w = 5};
  for_levels([&](const kernels::NativeKernels& kernels) {
    generic::expect_thread_invariant([&] { return forward(g, {.bias = true, .relu = true}, kernels); });
    generic::expect_thread_invariant([&] { return weight_gradient(g, kernels).dw; });
    generic::expect_thread_invariant([&] { return weight_gradient(g, kernels).dbias; });
  });
}

TEST(NativeConvolution, KeepsNan) {
  const kernels::ConvolutionGeometry g{
      .batch = 1, .in_channels = 1, .in_h = 4, .in_w = 4, .out_channels = 1, .kernel_h = 3, .kernel_w = 3};
  std::vector<float> x(16, 1.0F), w(9, 1.0F), y(4);
  x[0] = std::numeric_limits<float>::quiet_NaN();  // in the first window alone
  for_levels([&](const kernels::NativeKernels& kernels) {
    const kernels::native::DirectConvolution convolution(g, kForward, kernels);
    Workspace workspace(convolution.workspace_bytes());
    convolution.run({.x = x.data(), .w = w.data(), .relu = true, .y = y.data(), .workspace = workspace.data()});
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_EQ(y[1], 9);
    EXPECT_EQ(y[3], 9);
  });
}

TEST(NativeConvolution, RefusesWhatItDoesNotCompute) {
  const kernels::ConvolutionGeometry good{
      .batch = 1, .in_channels = 2, .in_h = 8, .in_w = 8, .out_channels = 2, .kernel_h = 3, .kernel_w = 3};
  ASSERT_TRUE(kernels::native::supports_convolution(good));
  const auto refused = [&](auto change) {
    kernels::ConvolutionGeometry g = good;
    change(g);
    EXPECT_FALSE(kernels::native::supports_convolution(g));
    EXPECT_FALSE(kernels::native::direct_forward_wins(g) || kernels::native::direct_backward_data_wins(g) ||
                 kernels::native::direct_backward_weights_wins(g));
    EXPECT_THROW(kernels::native::DirectConvolution(g, kForward), Error);
    EXPECT_THROW(kernels::native::DirectWeightGradient{g}, Error);
  };
  refused([](kernels::ConvolutionGeometry& g) { g.stride_w = 2; });
  refused([](kernels::ConvolutionGeometry& g) { g.stride_h = 2; });
  refused([](kernels::ConvolutionGeometry& g) { g.dilation_w = 2; });
  refused([](kernels::ConvolutionGeometry& g) { g.groups = 2; });
  refused([](kernels::ConvolutionGeometry& g) { g.padding_w = 3; });
  refused([](kernels::ConvolutionGeometry& g) { g.in_h = 2; });
  refused([](kernels::ConvolutionGeometry& g) { g.kernel_w = 9, g.in_w = 12; });
}

}  // namespace
}  // namespace lockstep::native

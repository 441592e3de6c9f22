#include "lockstep/core/error.h"
#include "lockstep/kernels/generic/convolution.h"
#include "lockstep/kernels/generic/gemm.h"
#include "tests/kernels/reference.h"

namespace lockstep::generic {
namespace {

template <class T>
class Conv2d : public ::testing::Test {};
TYPED_TEST_SUITE(Conv2d, FloatTypes);

std::vector<kernels::ConvolutionGeometry> geometries() {
  return {
      {.batch = 2,
       .in_channels = 3,
       .in_h = 8,
       .in_w = 7,
       .out_channels = 5,
       .kernel_h = 3,
       .kernel_w = 3,
       .padding_h = 1,
       .padding_w = 1},
      {.batch = 3,
       .in_channels = 5,
       .in_h = 9,
       .in_w = 11,
       .out_channels = 17,
       .kernel_h = 3,
       .kernel_w = 2,
       .stride_h = 2,
       .stride_w = 3,
       .padding_h = 2,
       .padding_w = 1},
      {.batch = 1, .in_channels = 1, .in_h = 1, .in_w = 1, .out_channels = 1, .kernel_h = 1, .kernel_w = 1},
      {.batch = 2,
       .in_channels = 3,
       .in_h = 1,
       .in_w = 1,
       .out_channels = 4,
       .kernel_h = 5,
       .kernel_w = 3,
       .padding_h = 2,
       .padding_w = 1},
      {.batch = 2, .in_channels = 17, .in_h = 6, .in_w = 5, .out_channels = 3, .kernel_h = 1, .kernel_w = 1},
      {.batch = 2,
       .in_channels = 4,
       .in_h = 7,
       .in_w = 6,
       .out_channels = 6,
       .kernel_h = 1,
       .kernel_w = 1,
       .stride_h = 2,
       .stride_w = 2},
      {.batch = 2,
       .in_channels = 3,
       .in_h = 12,
       .in_w = 10,
       .out_channels = 4,
       .kernel_h = 3,
       .kernel_w = 3,
       .padding_h = 2,
       .padding_w = 3,
       .dilation_h = 2,
       .dilation_w = 3},
      // Groups as products, as direct loops, depthwise, depthwise with a multiplier, and one output channel each.
      {.batch = 2,
       .in_channels = 12,
       .in_h = 6,
       .in_w = 7,
       .out_channels = 15,
       .kernel_h = 3,
       .kernel_w = 3,
       .padding_h = 1,
       .padding_w = 1,
       .groups = 3},
      {.batch = 2,
       .in_channels = 6,
       .in_h = 6,
       .in_w = 7,
       .out_channels = 9,
       .kernel_h = 3,
       .kernel_w = 3,
       .stride_h = 2,
       .stride_w = 1,
       .padding_h = 1,
       .padding_w = 1,
       .groups = 3},
      {.batch = 2,
       .in_channels = 5,
       .in_h = 7,
       .in_w = 19,
       .out_channels = 5,
       .kernel_h = 3,
       .kernel_w = 3,
       .padding_h = 1,
       .padding_w = 1,
       .groups = 5},
      {.batch = 1,
       .in_channels = 3,
       .in_h = 9,
       .in_w = 8,
       .out_channels = 6,
       .kernel_h = 3,
       .kernel_w = 5,
       .stride_h = 1,
       .stride_w = 2,
       .padding_h = 1,
       .padding_w = 2,
       .dilation_h = 2,
       .dilation_w = 1,
       .groups = 3},
      {.batch = 2,
       .in_channels = 40,
       .in_h = 4,
       .in_w = 4,
       .out_channels = 2,
       .kernel_h = 1,
       .kernel_w = 1,
       .groups = 2},
      // A kernel of which some taps only ever see padding.
      {.batch = 1,
       .in_channels = 2,
       .in_h = 2,
       .in_w = 2,
       .out_channels = 3,
       .kernel_h = 7,
       .kernel_w = 7,
       .padding_h = 3,
       .padding_w = 3},
      {.batch = 0, .in_channels = 3, .in_h = 8, .in_w = 8, .out_channels = 5, .kernel_h = 3, .kernel_w = 3},
      {.batch = 0,
       .in_channels = 3,
       .in_h = 8,
       .in_w = 8,
       .out_channels = 3,
       .kernel_h = 3,
       .kernel_w = 3,
       .groups = 3},
  };
}

std::int64_t x_size(const kernels::ConvolutionGeometry& g) { return g.batch * g.in_channels * g.in_h * g.in_w; }
std::int64_t y_size(const kernels::ConvolutionGeometry& g) { return g.batch * g.out_channels * g.out_h() * g.out_w(); }
std::int64_t w_size(const kernels::ConvolutionGeometry& g) {
  return g.out_channels * (g.in_channels / g.groups) * g.kernel_h * g.kernel_w;
}

// Calls term(x index, w index, y index) for every product of the convolution, straight from its definition.
template <class Term>
void for_products(const kernels::ConvolutionGeometry& g, const Term& term) {
  const std::int64_t oh = g.out_h(), ow = g.out_w(), in = g.in_channels / g.groups, out = g.out_channels / g.groups;
  for (std::int64_t n = 0; n < g.batch; ++n)
    for (std::int64_t o = 0; o < g.out_channels; ++o)
      for (std::int64_t r = 0; r < oh; ++r)
        for (std::int64_t c = 0; c < ow; ++c)
          for (std::int64_t i = 0; i < in; ++i)
            for (std::int64_t kh = 0; kh < g.kernel_h; ++kh)
              for (std::int64_t kw = 0; kw < g.kernel_w; ++kw) {
                const std::int64_t h = r * g.stride_h - g.padding_h + kh * g.dilation_h;
                const std::int64_t w = c * g.stride_w - g.padding_w + kw * g.dilation_w;
                if (h < 0 || h >= g.in_h || w < 0 || w >= g.in_w) continue;
                const std::int64_t channel = o / out * in + i;
                term(static_cast<std::size_t>(((n * g.in_channels + channel) * g.in_h + h) * g.in_w + w),
                     static_cast<std::size_t>(((o * in + i) * g.kernel_h + kh) * g.kernel_w + kw),
                     static_cast<std::size_t>(((n * g.out_channels + o) * oh + r) * ow + c));
              }
}

std::vector<Exact> exacts(std::int64_t n) { return std::vector<Exact>(static_cast<std::size_t>(n)); }

TYPED_TEST(Conv2d, ForwardMatchesDefinition) {
  using T = TypeParam;
  for (const kernels::ConvolutionGeometry& g : geometries()) {
    for (const bool with_bias : {false, true}) {
      const auto x = random_values<T>(x_size(g), 1), w = random_values<T>(w_size(g), 2);
      const auto bias = random_values<T>(g.out_channels, 3);
      auto y = unwritten<T>(y_size(g)), scratch = unwritten<T>(kernels::generic::convolution_forward_scratch(g));
      kernels::generic::convolution_forward<T>(g, x.data(), w.data(), with_bias ? bias.data() : nullptr, y.data(),
                                               scratch.data());
      auto want = exacts(y_size(g));
      for_products(g, [&](std::size_t i, std::size_t k, std::size_t o) {
        want[o].add(static_cast<double>(x[i]) * static_cast<double>(w[k]));
      });
      const std::size_t plane = static_cast<std::size_t>(g.out_h() * g.out_w());
      for (std::size_t o = 0; with_bias && o < want.size(); ++o) {
        want[o].add(static_cast<double>(bias[o / plane % static_cast<std::size_t>(g.out_channels)]));
      }
      expect_close(y, want, static_cast<double>(g.in_channels * g.kernel_h * g.kernel_w + 2));
    }
  }
}

TYPED_TEST(Conv2d, BackwardDataIsTheTranspose) {
  using T = TypeParam;
  for (const kernels::ConvolutionGeometry& g : geometries()) {
    const auto dy = random_values<T>(y_size(g), 4), w = random_values<T>(w_size(g), 5);
    auto dx = unwritten<T>(x_size(g)), scratch = unwritten<T>(kernels::generic::convolution_backward_data_scratch(g));
    kernels::generic::convolution_backward_data<T>(g, dy.data(), w.data(), dx.data(), scratch.data());
    auto want = exacts(x_size(g));
    for_products(g, [&](std::size_t i, std::size_t k, std::size_t o) {
      want[i].add(static_cast<double>(dy[o]) * static_cast<double>(w[k]));
    });
    expect_close(dx, want, static_cast<double>(g.out_channels * g.kernel_h * g.kernel_w + 2));
  }
}

TYPED_TEST(Conv2d, BackwardWeightsMatchesDefinition) {
  using T = TypeParam;
  for (const kernels::ConvolutionGeometry& g : geometries()) {
    const auto x = random_values<T>(x_size(g), 6), dy = random_values<T>(y_size(g), 7);
    auto dw = unwritten<T>(w_size(g)),
         scratch = unwritten<T>(kernels::generic::convolution_backward_weights_scratch(g));
    kernels::generic::convolution_backward_weights<T>(g, x.data(), dy.data(), dw.data(), scratch.data());
    auto want = exacts(w_size(g));
    for_products(g, [&](std::size_t i, std::size_t k, std::size_t o) {
      want[k].add(static_cast<double>(x[i]) * static_cast<double>(dy[o]));
    });
    expect_close(dw, want, static_cast<double>(g.batch * g.out_h() * g.out_w() + 2));
  }
}

TYPED_TEST(Conv2d, DirectLoopsDoNotDependOnThreads) {
  using T = TypeParam;
  const kernels::ConvolutionGeometry g{.batch = 3,
                                       .in_channels = 17,
                                       .in_h = 33,
                                       .in_w = 31,
                                       .out_channels = 17,
                                       .kernel_h = 3,
                                       .kernel_w = 3,
                                       .padding_h = 1,
                                       .padding_w = 1,
                                       .groups = 17};
  const auto x = random_values<T>(x_size(g), 8), dy = random_values<T>(y_size(g), 9),
             w = random_values<T>(w_size(g), 10);
  expect_thread_invariant([&] {
    auto y = unwritten<T>(y_size(g)), dx = unwritten<T>(x_size(g)), dw = unwritten<T>(w_size(g));
    kernels::generic::convolution_forward<T>(g, x.data(), w.data(), nullptr, y.data(), nullptr);
    kernels::generic::convolution_backward_data<T>(g, dy.data(), w.data(), dx.data(), nullptr);
    kernels::generic::convolution_backward_weights<T>(g, x.data(), dy.data(), dw.data(), nullptr);
    y.insert(y.end(), dx.begin(), dx.end());
    y.insert(y.end(), dw.begin(), dw.end());
    return y;
  });
}

TEST(ConvolutionGeometry, WindowLargerThanTheImageHasNoOutput) {
  const kernels::ConvolutionGeometry g{.batch = 1,
                                       .in_channels = 1,
                                       .in_h = 2,
                                       .in_w = 3,
                                       .out_channels = 1,
                                       .kernel_h = 3,
                                       .kernel_w = 3,
                                       .stride_h = 2,
                                       .stride_w = 2};
  EXPECT_EQ(g.out_h(), 0);
  EXPECT_EQ(g.out_w(), 1);
}

TEST(ConvolutionGeometry, GroupsThatDoNotDivideAreAnError) {
  const kernels::ConvolutionGeometry g{
      .batch = 1, .in_channels = 4, .in_h = 2, .in_w = 2, .out_channels = 6, .groups = 4};
  EXPECT_THROW(kernels::generic::convolution_forward_scratch(g), Error);
}

template <class T>
class Gemm : public ::testing::Test {};
TYPED_TEST_SUITE(Gemm, FloatTypes);

TYPED_TEST(Gemm, MatchesDefinitionInAllTranspositions) {
  using T = TypeParam;
  struct Case {
    std::int64_t m, n, k;
  };
  for (const auto [m, n, k] :
       {Case{3, 5, 7}, Case{1, 1, 1}, Case{17, 1, 33}, Case{4, 6, 0}, Case{0, 3, 2}, Case{3, 0, 2}}) {
    for (const int trans : {0, 1, 2, 3}) {
      for (const T beta : {T(0), T(0.5)}) {
        const bool ta = trans & 1, tb = trans & 2;
        const std::int64_t lda = (ta ? m : k) + 2, ldb = (tb ? k : n) + 1, ldc = n + 3;
        const auto a = random_values<T>((ta ? k : m) * lda, 1), b = random_values<T>((tb ? n : k) * ldb, 2);
        const auto before = beta == T(0) ? unwritten<T>(m * ldc) : random_values<T>(m * ldc, 3);
        auto c = before;
        kernels::generic::gemm<T>(ta, tb, m, n, k, T(2), a.data(), lda, b.data(), ldb, beta, c.data(), ldc);
        std::vector<T> got;
        std::vector<Exact> want;
        for (std::int64_t i = 0; i < m; ++i) {
          for (std::int64_t j = 0; j < n; ++j) {
            Exact e;
            for (std::int64_t l = 0; l < k; ++l) {
              e.add(2 * static_cast<double>(a[static_cast<std::size_t>(ta ? l * lda + i : i * lda + l)]) *
                    static_cast<double>(b[static_cast<std::size_t>(tb ? j * ldb + l : l * ldb + j)]));
            }
            const std::size_t at = static_cast<std::size_t>(i * ldc + j);
            if (beta != T(0)) e.add(static_cast<double>(beta) * static_cast<double>(before[at]));
            want.push_back(e);
            got.push_back(c[at]);
          }
        }
        expect_close(got, want, static_cast<double>(k + 3));
      }
    }
  }
}

TEST(Gemm, CountsThatDoNotFitAreErrors) {
  float a = 0, c = 0;
  EXPECT_THROW(kernels::generic::gemm<float>(false, false, std::int64_t{1} << 31, 1, 1, 1, &a, 1, &a, 1, 0, &c, 1),
               Error);
  EXPECT_THROW(kernels::generic::gemm<float>(false, false, 1, 1, 4, 1, &a, 3, &a, 1, 0, &c, 1), Error);
}

}  // namespace
}  // namespace lockstep::generic

#include <algorithm>
#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/kernels/generic/batch_norm.h"
#include "lockstep/kernels/native/batch_norm.h"
#include "lockstep/kernels/native/elementwise.h"
#include "tests/kernels/native_support.h"

namespace lockstep::native {
namespace {

using generic::same_bits;
constexpr double kEps = 1e-5;

template <class T>
class NativeBatchNorm : public ::testing::Test {};
TYPED_TEST_SUITE(NativeBatchNorm, ElementTypes);

std::vector<kernels::BatchNormView> views() {
  std::vector<kernels::BatchNormView> all;
  for (const std::int64_t block : {1, 8, 16}) {
    for (const std::int64_t channels : {1, 5, 17, 32}) {
      all.push_back({.batch = 3, .channels = channels, .spatial = 35, .block = block});
      all.push_back({.batch = 5, .channels = channels, .spatial = 1, .block = block});
      all.push_back({.batch = 1, .channels = channels, .spatial = 64, .block = block});
    }
    all.push_back({.batch = 4, .channels = 3, .spatial = 16 * 2503 / block, .block = block});  // several chunks
    all.push_back({.batch = 1, .channels = 3, .spatial = 1, .block = block});
    all.push_back({.batch = 0, .channels = 3, .spatial = 9, .block = block});
  }
  return all;
}

// Calls body(channel, index) for every logical element.
template <class Body>
void for_elements(const kernels::BatchNormView& v, const Body& body) {
  for (std::int64_t n = 0; n < v.batch; ++n)
    for (std::int64_t c = 0; c < v.channels; ++c)
      for (std::int64_t s = 0; s < v.spatial; ++s)
        body(static_cast<std::size_t>(c),
             static_cast<std::size_t>(((n * v.blocks() + c / v.block) * v.spatial + s) * v.block + c % v.block));
}

// Random where there are channels, 0 in the padding lanes.
template <class T>
std::vector<T> activations(const kernels::BatchNormView& v, std::uint64_t seed, double centre) {
  const auto values = random_elements<T>(v.elements(), seed, centre);
  std::vector<T> out(values.size());
  for_elements(v, [&](std::size_t, std::size_t i) { out[i] = values[i]; });
  return out;
}

template <class T>
void expect_zero_padding(const kernels::BatchNormView& v, std::vector<T> values) {
  for_elements(v, [&](std::size_t, std::size_t i) { values[i] = T{}; });
  EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](T value) { return to_float(value) == 0; }));
}

struct NormWorkspace {
  explicit NormWorkspace(const kernels::BatchNormView& v)
      : memory(static_cast<std::size_t>(kernels::native::batch_norm_workspace(v)) / 64 + 1) {}
  std::byte* data() { return reinterpret_cast<std::byte*>(memory.data()); }
  struct alignas(64) Line {
    char bytes[64];
  };
  std::vector<Line> memory;
};

// Inputs, and what forward and backward make of them.
template <class T>
struct Layer {
  explicit Layer(const kernels::BatchNormView& v, double centre = 0.3)
      : view(v),
        x(activations<T>(v, 1, centre)),
        residual(activations<T>(v, 2, 0)),
        dy(activations<T>(v, 3, 0.1)),
        gamma(generic::random_values<float>(v.channels, 4)),
        beta(generic::random_values<float>(v.channels, 5)),
        y(blank<T>(v.elements())),
        dx(y),
        dresidual(y),
        mean(blank<float>(v.channels)),
        inv_std(mean),
        dgamma(mean),
        dbeta(mean),
        sums(2 * mean.size(), NAN),
        workspace(v) {}

  kernels::native::BatchNormForward<T> forward(bool relu, bool with_residual) {
    return {.view = view,
            .x = x.data(),
            .residual = with_residual ? residual.data() : nullptr,
            .gamma = gamma.data(),
            .beta = beta.data(),
            .eps = kEps,
            .relu = relu,
            .y = y.data(),
            .mean = mean.data(),
            .inv_std = inv_std.data(),
            .sums = sums.data(),
            .workspace = workspace.data()};
  }
  kernels::native::BatchNormBackward<T> backward(bool relu, bool with_residual) {
    return {.view = view,
            .x = x.data(),
            .dy = dy.data(),
            .y = with_residual ? y.data() : nullptr,
            .gamma = gamma.data(),
            .beta = beta.data(),
            .mean = mean.data(),
            .inv_std = inv_std.data(),
            .relu = relu,
            .dx = dx.data(),
            .dresidual = relu && with_residual ? dresidual.data() : nullptr,
            .dgamma = dgamma.data(),
            .dbeta = dbeta.data(),
            .workspace = workspace.data()};
  }
  kernels::native::BatchNormApply<T> apply(bool relu, bool with_residual, T* out) {
    return {.view = view,
            .x = x.data(),
            .residual = with_residual ? residual.data() : nullptr,
            .gamma = gamma.data(),
            .beta = beta.data(),
            .mean = mean.data(),
            .inv_std = inv_std.data(),
            .relu = relu,
            .y = out};
  }

  kernels::BatchNormView view;
  std::vector<T> x, residual, dy;
  std::vector<float> gamma, beta;
  std::vector<T> y, dx, dresidual;
  std::vector<float> mean, inv_std, dgamma, dbeta;
  std::vector<double> sums;
  NormWorkspace workspace;
};

// A channel's f32 sums are rounded up to 34 times on the way to the double, each by 2^-24 of a partial sum.
constexpr double kSumRounding = 34 * 0x1p-24;

template <class T>
void expect_forward(const Layer<T>& layer, bool relu, bool with_residual) {
  const kernels::BatchNormView& v = layer.view;
  const auto x = as_double(layer.x), gamma = as_double(layer.gamma), beta = as_double(layer.beta);
  std::vector<double> y(x.size()), mean(gamma.size()), inv_std(gamma.size()), sums(2 * gamma.size());
  kernels::generic::batch_norm_forward<double>(v, x.data(), gamma.data(), beta.data(), kEps, y.data(), mean.data(),
                                               inv_std.data(), sums.data());
  const double n = static_cast<double>(v.batch * v.spatial);
  for (std::size_t c = 0; c < mean.size(); ++c) {
    // x lies within 1 of its centre, so the pivot is within 2.
    ASSERT_NEAR(static_cast<double>(layer.mean[c]), mean[c], 2 * kSumRounding + 0x1p-24 * std::abs(mean[c]));
    const double variance = 1 / (inv_std[c] * inv_std[c]), got = static_cast<double>(layer.inv_std[c]);
    ASSERT_NEAR(1 / (got * got), variance, 4 * kSumRounding);
    ASSERT_NEAR(layer.sums[c], sums[c], n * 2 * kSumRounding);
    ASSERT_NEAR(layer.sums[mean.size() + c], sums[mean.size() + c],
                n * kSumRounding * (4 + 4 * std::abs(mean[c])) + 1e-12 * n * mean[c] * mean[c]);
  }
  for_elements(v, [&](std::size_t c, std::size_t i) {
    const double m = static_cast<double>(layer.mean[c]), scale = gamma[c] * static_cast<double>(layer.inv_std[c]);
    double want = (x[i] - m) * scale + beta[c];
    const double size = std::abs((x[i] - m) * scale) + std::abs(beta[c]) + 1;
    if (with_residual) want += static_cast<double>(to_float(layer.residual[i]));
    if (relu) want = std::max(want, 0.0);
    ASSERT_NEAR(static_cast<double>(to_float(layer.y[i])), want, 6 * 0x1p-24 * size + kRounding<T> * std::abs(want));
  });
  expect_zero_padding(v, layer.y);
}

template <class T>
void expect_backward(const Layer<T>& layer, bool relu, bool with_residual) {
  const kernels::BatchNormView& v = layer.view;
  const auto x = as_double(layer.x), gamma = as_double(layer.gamma), mean = as_double(layer.mean),
             inv_std = as_double(layer.inv_std);
  auto g = as_double(layer.dy);
  for (std::size_t i = 0; relu && i < g.size(); ++i) g[i] = to_float(layer.y[i]) > 0 ? g[i] : 0;
  std::vector<double> dx(x.size()), dgamma(gamma.size()), dbeta(gamma.size());
  kernels::generic::batch_norm_backward<double>(v, x.data(), g.data(), gamma.data(), mean.data(), inv_std.data(),
                                                dx.data(), dgamma.data(), dbeta.data());
  const double n = static_cast<double>(v.batch * v.spatial);
  for (std::size_t c = 0; c < gamma.size(); ++c) {
    ASSERT_NEAR(static_cast<double>(layer.dgamma[c]), dgamma[c], 2 * kSumRounding * n * (2 * inv_std[c]));
    ASSERT_NEAR(static_cast<double>(layer.dbeta[c]), dbeta[c], 2 * kSumRounding * n);
  }
  for_elements(v, [&](std::size_t c, std::size_t i) {
    const double scale = std::abs(gamma[c]) * inv_std[c], normal = std::abs(x[i] - mean[c]) * inv_std[c];
    const double bound = 2 * kSumRounding * scale * (1 + (normal + 1) * 2 * inv_std[c]);
    ASSERT_NEAR(static_cast<double>(to_float(layer.dx[i])), dx[i], bound + kRounding<T> * std::abs(dx[i]));
    if (relu && with_residual) {
      ASSERT_EQ(static_cast<double>(to_float(layer.dresidual[i])), g[i]);
    }
  });
  expect_zero_padding(v, layer.dx);
  if (relu && with_residual) expect_zero_padding(v, layer.dresidual);
}

// The sums alone, then each pass by given sums: forward's and backward's own bits.
TYPED_TEST(NativeBatchNorm, PartsMakeTheBitsOfTheWhole) {
  using T = TypeParam;
  for (const kernels::BatchNormView& v : views()) {
    for (const auto& [relu, with_residual] : {std::pair(false, false), {true, false}, {true, true}}) {
      Layer<T> whole(v), parts(v);
      kernels::native::batch_norm_forward(whole.forward(relu, with_residual));
      kernels::native::batch_norm_backward(whole.backward(relu, with_residual));
      kernels::native::batch_norm_moments<T>(
          {.view = v, .x = parts.x.data(), .sums = parts.sums.data(), .workspace = parts.workspace.data()});
      EXPECT_TRUE(same_bits(parts.sums, whole.sums));
      parts.mean = whole.mean;
      parts.inv_std = whole.inv_std;
      parts.y = whole.y;
      kernels::native::BatchNormBackward<T> backward = parts.backward(relu, with_residual);
      std::vector<double> sums(parts.sums.size());
      kernels::native::batch_norm_gradient_sums(backward, sums.data());
      if (with_residual) {
        EXPECT_TRUE(same_bits(parts.dresidual, whole.dresidual));
        backward.dy = parts.dresidual.data();
        backward.y = nullptr;
        backward.dresidual = nullptr;
        backward.relu = false;
      }
      kernels::native::batch_norm_gradient_apply(backward, sums.data(),
                                                 std::max(1.0, static_cast<double>(v.batch * v.spatial)));
      EXPECT_TRUE(same_bits(parts.dx, whole.dx));
      EXPECT_TRUE(same_bits(parts.dgamma, whole.dgamma));
      EXPECT_TRUE(same_bits(parts.dbeta, whole.dbeta));
    }
  }
}

TYPED_TEST(NativeBatchNorm, MatchesTheF64KernelsAtEveryViewAndLevel) {
  using T = TypeParam;
  for_levels([](const kernels::NativeKernels& kernels) {
    for (const kernels::BatchNormView& v : views()) {
      SCOPED_TRACE(formatted("{} x {} x {}, block {}", v.batch, v.channels, v.spatial, v.block));
      for (const bool relu : {false, true}) {
        for (const bool residual : {false, true}) {
          Layer<T> layer(v);
          kernels::native::batch_norm_forward<T>(layer.forward(relu, residual), kernels);
          kernels::native::batch_norm_backward<T>(layer.backward(relu, residual), kernels);
          expect_forward(layer, relu, residual);
          expect_backward(layer, relu, residual);
          auto again = blank<T>(v.elements());
          kernels::native::batch_norm_apply<T>(layer.apply(relu, residual, again.data()), kernels);
          ASSERT_TRUE(same_bits(again, layer.y));
        }
      }
    }
  });
}

// A mean that is large beside the deviation, and a first element far from all others.
TEST(NativeBatchNormAccuracy, StatisticsOfShiftedDataAndOutliers) {
  const kernels::BatchNormView v{.batch = 64, .channels = 16, .spatial = 1024, .block = 16};
  for (const bool outlier : {false, true}) {
    Layer<float> layer(v, 1000);
    for (std::size_t l = 0; outlier && l < 16; ++l) layer.x[l] = 2000;
    kernels::native::batch_norm_forward<float>(layer.forward(true, false));
    const auto x = as_double(layer.x);
    std::vector<double> y(x.size()), mean(16), inv_std(16), sums(32);
    kernels::generic::batch_norm_forward<double>(v, x.data(), nullptr, nullptr, kEps, y.data(), mean.data(),
                                                 inv_std.data(), sums.data());
    for (std::size_t c = 0; c < 16; ++c) {
      EXPECT_NEAR(static_cast<double>(layer.mean[c]), mean[c], 1e-7 * mean[c]);
      EXPECT_NEAR(static_cast<double>(layer.inv_std[c]), inv_std[c], (outlier ? 1e-3 : 2e-6) * inv_std[c]);
    }
  }
}

TYPED_TEST(NativeBatchNorm, InferenceUsesTheGivenVariance) {
  using T = TypeParam;
  for_levels([](const kernels::NativeKernels& kernels) {
    for (const std::int64_t block : {1, 8, 16}) {
      Layer<T> layer({.batch = 2, .channels = 21, .spatial = 19, .block = block});
      layer.mean = generic::random_values<float>(21, 8);
      const auto variance = generic::random_values<float>(21, 9, 1.5);
      auto options = layer.apply(true, true, layer.y.data());
      options.inv_std = nullptr;
      options.variance = variance.data();
      options.eps = kEps;
      kernels::native::batch_norm_apply<T>(options, kernels);
      for_elements(layer.view, [&](std::size_t c, std::size_t i) {
        const double normal = static_cast<double>(to_float(layer.x[i]) - layer.mean[c]) /
                              std::sqrt(static_cast<double>(variance[c]) + kEps);
        const double want = std::max(0.0, normal * static_cast<double>(layer.gamma[c]) +
                                              static_cast<double>(layer.beta[c] + to_float(layer.residual[i])));
        ASSERT_NEAR(static_cast<double>(to_float(layer.y[i])), want, 4e-6 + kRounding<T> * want);
      });
      expect_zero_padding(layer.view, layer.y);
    }
  });
}

TYPED_TEST(NativeBatchNorm, WorksInPlace) {
  using T = TypeParam;
  for_levels([](const kernels::NativeKernels& kernels) {
    for (const std::int64_t spatial : {37, 5000}) {  // one chunk, and several
      for (const int threads : {1, 2}) {
        const generic::Threads scope(threads);
        const kernels::BatchNormView v{.batch = 2, .channels = 37, .spatial = spatial, .block = 16};
        Layer<T> apart(v), onto_x(v), onto_residual(v);
        kernels::native::batch_norm_forward<T>(apart.forward(true, true), kernels);
        auto options = onto_x.forward(true, true);
        options.y = onto_x.x.data();
        kernels::native::batch_norm_forward<T>(options, kernels);
        EXPECT_TRUE(same_bits(onto_x.x, apart.y));
        options = onto_residual.forward(true, true);
        options.y = onto_residual.residual.data();
        kernels::native::batch_norm_forward<T>(options, kernels);
        EXPECT_TRUE(same_bits(onto_residual.residual, apart.y));

        kernels::native::batch_norm_backward<T>(apart.backward(true, true), kernels);
        const auto backward = [&](auto redirect) {
          Layer<T> other = apart;
          auto gradient = other.backward(true, true);
          gradient.workspace = apart.workspace.data();
          redirect(other, gradient);
          kernels::native::batch_norm_backward<T>(gradient, kernels);
          EXPECT_TRUE(same_bits(other.dgamma, apart.dgamma));
          return other;
        };
        EXPECT_TRUE(same_bits(backward([](auto& l, auto& g) { g.dx = l.x.data(); }).x, apart.dx));
        EXPECT_TRUE(same_bits(backward([](auto& l, auto& g) { g.dx = l.dy.data(); }).dy, apart.dx));
        const Layer<T> masked = backward([](auto& l, auto& g) { g.dresidual = l.dy.data(); });
        EXPECT_TRUE(same_bits(masked.dy, apart.dresidual) && same_bits(masked.dx, apart.dx));
        const Layer<T> plain = backward([](auto& l, auto& g) {
          g.dresidual = nullptr;
          g.dx = l.dy.data();
        });
        EXPECT_TRUE(same_bits(plain.dy, apart.dx));
      }
    }
  });
}

TYPED_TEST(NativeBatchNorm, AddsAsAPassOfItsOwnWould) {
  using T = TypeParam;
  for_levels([](const kernels::NativeKernels& kernels) {
    for (const kernels::BatchNormView& v : views()) {
      SCOPED_TRACE(formatted("{} x {} x {}, block {}", v.batch, v.channels, v.spatial, v.block));
      auto addend = activations<T>(v, 6, -0.2);
      Layer<T> want(v), got(v), onto_addend(v);
      for (Layer<T>* layer : {&want, &got, &onto_addend})
        kernels::native::batch_norm_forward<T>(layer->forward(true, true), kernels);
      kernels::native::add(v.elements(), want.dy.data(), addend.data(), want.dy.data(), kernels);
      kernels::native::batch_norm_backward<T>(want.backward(true, true), kernels);
      for (Layer<T>* layer : {&got, &onto_addend}) {
        auto options = layer->backward(true, true);
        options.addend = addend.data();
        if (layer == &onto_addend) options.dresidual = addend.data();
        kernels::native::batch_norm_backward<T>(options, kernels);
        EXPECT_TRUE(same_bits(layer->dx, want.dx) && same_bits(layer->dgamma, want.dgamma) &&
                    same_bits(layer->dbeta, want.dbeta));
      }
      EXPECT_TRUE(same_bits(got.dresidual, want.dresidual) && same_bits(addend, want.dresidual));
    }
  });
}

TYPED_TEST(NativeBatchNorm, DoesNotDependOnThreadsOrLevel) {
  using T = TypeParam;
  for (const std::int64_t block : {1, 8, 16}) {
    for (const std::int64_t channels :
         {std::int64_t{1}, 2 * block + 1}) {  // with one channel block, threads share its chunks
      const kernels::BatchNormView v{.batch = 5, .channels = channels, .spatial = 33 * 1001 / block, .block = block};
      const auto run = [&](const kernels::NativeKernels& kernels, int threads) {
        const generic::Threads scope(threads);
        Layer<T> layer(v);
        kernels::native::batch_norm_forward<T>(layer.forward(true, false), kernels);
        kernels::native::batch_norm_backward<T>(layer.backward(true, false), kernels);
        return layer;
      };
      const Layer<T> want = run(*kernels::native::levels().front().kernels, 1);
      for_levels([&](const kernels::NativeKernels& kernels) {
        for (const int threads : {1, 2, 3}) {
          const Layer<T> got = run(kernels, threads);
          EXPECT_TRUE(same_bits(got.y, want.y) && same_bits(got.dx, want.dx) && same_bits(got.sums, want.sums) &&
                      same_bits(got.dgamma, want.dgamma) && same_bits(got.dbeta, want.dbeta))
              << threads << " threads";
        }
      });
    }
  }
}

TEST(NativeBatchNormErrors, WrongArgumentsAreNamed) {
  Layer<float> layer({.batch = 1, .channels = 4, .spatial = 1, .block = 1});
  auto forward = layer.forward(false, false);
  forward.view.block = 4;
  EXPECT_THROW(kernels::native::batch_norm_forward<float>(forward), Error);
  auto backward = layer.backward(true, false);
  backward.dresidual = layer.dresidual.data();
  EXPECT_THROW(kernels::native::batch_norm_backward<float>(backward), Error);
  backward = layer.backward(true, false);
  backward.addend = layer.dy.data();
  EXPECT_THROW(kernels::native::batch_norm_backward<float>(backward), Error);
  auto apply = layer.apply(false, false, layer.y.data());
  apply.inv_std = nullptr;
  EXPECT_THROW(kernels::native::batch_norm_apply<float>(apply), Error);
}

}  // namespace
}  // namespace lockstep::native

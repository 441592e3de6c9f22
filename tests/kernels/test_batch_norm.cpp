#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/kernels/generic/batch_norm.h"
#include "tests/kernels/reference.h"

namespace lockstep::generic {
namespace {

template <class T>
class BatchNorm : public ::testing::Test {};
TYPED_TEST_SUITE(BatchNorm, FloatTypes);

std::vector<kernels::BatchNormView> views() {
  std::vector<kernels::BatchNormView> all;
  for (const std::int64_t block : {1, 8, 16}) {
    for (const std::int64_t channels : {1, 3, 5, 17, 32}) {
      all.push_back({.batch = 3, .channels = channels, .spatial = 35, .block = block});
      all.push_back({.batch = 5, .channels = channels, .spatial = 1, .block = block});
    }
    all.push_back({.batch = 1, .channels = 3, .spatial = 64, .block = block});
  }
  return all;
}

std::int64_t place(const kernels::BatchNormView& v, std::int64_t n, std::int64_t c, std::int64_t s) {
  return ((n * v.blocks() + c / v.block) * v.spatial + s) * v.block + c % v.block;
}

// Calls body(c, index) for every logical element.
template <class Body>
void for_elements(const kernels::BatchNormView& v, const Body& body) {
  for (std::int64_t c = 0; c < v.channels; ++c)
    for (std::int64_t n = 0; n < v.batch; ++n)
      for (std::int64_t s = 0; s < v.spatial; ++s)
        body(static_cast<std::size_t>(c), static_cast<std::size_t>(place(v, n, c, s)));
}

// Random where there are channels, 0 in the padding lanes; in scrambled places, so that it is not periodic.
template <class T>
std::vector<T> activations(const kernels::BatchNormView& v, std::uint64_t seed, double centre) {
  const auto values = random_values<T>(v.elements(), seed, centre);
  std::vector<T> out(values.size(), T(0));
  for_elements(v, [&](std::size_t, std::size_t i) { out[i] = values[i]; });
  return out;
}

template <class T>
struct Outputs {
  explicit Outputs(const kernels::BatchNormView& v)
      : y(unwritten<T>(v.elements())),
        mean(unwritten<T>(v.channels)),
        inv_std(mean),
        dgamma(mean),
        dbeta(mean),
        sums(unwritten<double>(2 * v.channels)) {}
  std::vector<T> y, mean, inv_std, dgamma, dbeta;
  std::vector<double> sums;
};

// Every padding lane must hold 0.
template <class T>
void expect_zero_padding(const kernels::BatchNormView& v, std::vector<T> values) {
  for_elements(v, [&](std::size_t, std::size_t i) { values[i] = T(0); });
  EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](T value) { return value == T(0); }));
}

constexpr double kEps = 1e-5;

struct Statistics {
  long double mean = 0, variance = 0;
};

template <class T>
std::vector<Statistics> statistics(const kernels::BatchNormView& v, const std::vector<T>& x) {
  std::vector<Statistics> all(static_cast<std::size_t>(v.channels));
  const long double n = static_cast<long double>(std::max<std::int64_t>(v.batch * v.spatial, 1));
  for_elements(v, [&](std::size_t c, std::size_t i) { all[c].mean += static_cast<long double>(x[i]) / n; });
  for_elements(v, [&](std::size_t c, std::size_t i) {
    const long double d = static_cast<long double>(x[i]) - all[c].mean;
    all[c].variance += d * d / n;
  });
  return all;
}

TYPED_TEST(BatchNorm, ForwardMatchesTwoPassReference) {
  using T = TypeParam;
  for (const double centre : {0.0, 3.0, 1000.0}) {
    for (const kernels::BatchNormView& v : views()) {
      const auto x = activations<T>(v, 1, centre), gamma = random_values<T>(v.channels, 2),
                 beta = random_values<T>(v.channels, 3);
      Outputs<T> o(v);
      kernels::generic::batch_norm_forward<T>(v, x.data(), gamma.data(), beta.data(), kEps, o.y.data(), o.mean.data(),
                                              o.inv_std.data(), o.sums.data());
      const auto want = statistics(v, x);
      const double n = static_cast<double>(v.batch * v.spatial), u = kUnit<T>, u64 = kUnit<double>;
      for (std::size_t c = 0; c < want.size(); ++c) {
        const double mean = static_cast<double>(want[c].mean), variance = static_cast<double>(want[c].variance);
        const double inverse = 1 / std::sqrt(variance + kEps), size = std::abs(mean) + 1;
        ASSERT_NEAR(static_cast<double>(o.mean[c]), mean, (u + 2 * n * u64) * size);
        // The shifted sums lose at most a factor n of double's precision, then one rounding to T.
        ASSERT_NEAR(static_cast<double>(o.inv_std[c]), inverse, (2 * u + 4 * n * n * u64) * inverse);
        ASSERT_NEAR(o.sums[c], n * mean, 2 * n * n * u64 * size);
        const double square = n * (variance + mean * mean);
        ASSERT_NEAR(o.sums[want.size() + c], square, 4 * n * n * u64 * (square + 1));
      }
      for_elements(v, [&](std::size_t c, std::size_t i) {
        const double mean = static_cast<double>(want[c].mean);
        const double inverse = 1 / std::sqrt(static_cast<double>(want[c].variance) + kEps);
        const double scale = static_cast<double>(gamma[c]) * inverse;
        const double value = scale * (static_cast<double>(x[i]) - mean) + static_cast<double>(beta[c]);
        // The mean is rounded to T; the rest are six roundings of values of size (x - mean) * scale and beta.
        const double bound = u * std::abs(scale) * (std::abs(mean) + 1) + 6 * u * (2 * std::abs(scale) + 1);
        ASSERT_NEAR(static_cast<double>(o.y[i]), value, 2 * bound + 8 * n * n * u64 * (1 + std::abs(scale * mean)));
      });
      expect_zero_padding(v, o.y);
    }
  }
}

// The gradient of sum(y * r) by central differences in f64: a step h errs by h^2 times the third derivative, and by
// rounding / h; the variance is about 1/3, so 1e-5 leaves about 1e-9 of values of size 1.
TEST(BatchNorm, BackwardMatchesFiniteDifferences) {
  for (const bool inference : {false, true}) {
    for (const std::int64_t block : {1, 8}) {
      const kernels::BatchNormView v{.batch = 2, .channels = 3, .spatial = 5, .block = block};
      auto x = activations<double>(v, 1, 0.5), gamma = random_values<double>(3, 2), beta = random_values<double>(3, 3);
      const auto r = activations<double>(v, 4, 0);
      const std::vector<double> mean{0.1, 0.2, -0.3}, variance{0.5, 1.5, 0.2};
      const auto loss = [&] {
        Outputs<double> o(v);
        if (inference) {
          kernels::generic::batch_norm_inference(v, x.data(), gamma.data(), beta.data(), mean.data(), variance.data(),
                                                 kEps, o.y.data());
        } else {
          kernels::generic::batch_norm_forward(v, x.data(), gamma.data(), beta.data(), kEps, o.y.data(), o.mean.data(),
                                               o.inv_std.data(), o.sums.data());
        }
        double total = 0;
        for_elements(v, [&](std::size_t, std::size_t i) { total += o.y[i] * r[i]; });
        return total;
      };
      Outputs<double> o(v);
      auto dx = unwritten<double>(v.elements());
      if (inference) {
        kernels::generic::batch_norm_inference_backward(v, x.data(), r.data(), gamma.data(), mean.data(),
                                                        variance.data(), kEps, dx.data(), o.dgamma.data(),
                                                        o.dbeta.data());
      } else {
        kernels::generic::batch_norm_forward(v, x.data(), gamma.data(), beta.data(), kEps, o.y.data(), o.mean.data(),
                                             o.inv_std.data(), o.sums.data());
        kernels::generic::batch_norm_backward(v, x.data(), r.data(), gamma.data(), o.mean.data(), o.inv_std.data(),
                                              dx.data(), o.dgamma.data(), o.dbeta.data());
      }
      const auto difference = [&](double& at) {
        const double before = at, h = 1e-5;
        at = before + h;
        const double up = loss();
        at = before - h;
        const double down = loss();
        at = before;
        return (up - down) / (2 * h);
      };
      for_elements(v, [&](std::size_t, std::size_t i) { ASSERT_NEAR(dx[i], difference(x[i]), 1e-8); });
      for (std::size_t c = 0; c < 3; ++c) {
        ASSERT_NEAR(o.dgamma[c], difference(gamma[c]), 1e-8);
        ASSERT_NEAR(o.dbeta[c], difference(beta[c]), 1e-8);
      }
      expect_zero_padding(v, dx);
    }
  }
}

TYPED_TEST(BatchNorm, BackwardMatchesFormulaAtEveryView) {
  using T = TypeParam;
  for (const kernels::BatchNormView& v : views()) {
    const auto x = activations<T>(v, 1, 2), dy = activations<T>(v, 2, 0.3), gamma = random_values<T>(v.channels, 3);
    Outputs<T> o(v);
    kernels::generic::batch_norm_forward<T>(v, x.data(), gamma.data(), nullptr, kEps, o.y.data(), o.mean.data(),
                                            o.inv_std.data(), o.sums.data());
    auto dx = unwritten<T>(v.elements());
    kernels::generic::batch_norm_backward<T>(v, x.data(), dy.data(), gamma.data(), o.mean.data(), o.inv_std.data(),
                                             dx.data(), o.dgamma.data(), o.dbeta.data());
    const double n = static_cast<double>(v.batch * v.spatial);
    std::vector<Exact> dgamma(static_cast<std::size_t>(v.channels)), dbeta(dgamma), want(dx.size());
    const auto normal = [&](std::size_t c, std::size_t i) {
      return (static_cast<double>(x[i]) - static_cast<double>(o.mean[c])) * static_cast<double>(o.inv_std[c]);
    };
    for_elements(v, [&](std::size_t c, std::size_t i) {
      dgamma[c].add(static_cast<double>(dy[i]) * normal(c, i));
      dbeta[c].add(static_cast<double>(dy[i]));
    });
    for_elements(v, [&](std::size_t c, std::size_t i) {
      const double scale = static_cast<double>(gamma[c]) * static_cast<double>(o.inv_std[c]);
      want[i].add(scale * static_cast<double>(dy[i]));
      want[i].add(-scale * dbeta[c].value / n);
      want[i].add(-scale * normal(c, i) * dgamma[c].value / n);
      want[i].magnitude += std::abs(scale) * (dbeta[c].magnitude + std::abs(normal(c, i)) * dgamma[c].magnitude) / n;
    });
    expect_close(dx, want, sizeof(T) == 4 ? 6 : n + 6);  // f32 is summed in double
    expect_close(o.dgamma, dgamma, sizeof(T) == 4 ? 2 : n + 4);
    expect_close(o.dbeta, dbeta, sizeof(T) == 4 ? 2 : n + 4);
    expect_zero_padding(v, dx);
  }
}

TYPED_TEST(BatchNorm, InferenceMatchesFormulaAtEveryView) {
  using T = TypeParam;
  for (const kernels::BatchNormView& v : views()) {
    const auto x = activations<T>(v, 1, 0.2), dy = activations<T>(v, 2, 0);
    const auto gamma = random_values<T>(v.channels, 3), beta = random_values<T>(v.channels, 4);
    const auto mean = random_values<T>(v.channels, 5), variance = random_values<T>(v.channels, 6, 1.5);
    Outputs<T> o(v);
    auto dx = unwritten<T>(v.elements());
    kernels::generic::batch_norm_inference<T>(v, x.data(), gamma.data(), beta.data(), mean.data(), variance.data(),
                                              kEps, o.y.data());
    kernels::generic::batch_norm_inference_backward<T>(v, x.data(), dy.data(), gamma.data(), mean.data(),
                                                       variance.data(), kEps, dx.data(), o.dgamma.data(),
                                                       o.dbeta.data());
    std::vector<Exact> want_y(dx.size()), want_dx(dx.size()), dgamma(static_cast<std::size_t>(v.channels)),
        dbeta(dgamma);
    for_elements(v, [&](std::size_t c, std::size_t i) {
      const double inverse = 1 / std::sqrt(static_cast<double>(variance[c]) + kEps);
      const double normal = (static_cast<double>(x[i]) - static_cast<double>(mean[c])) * inverse;
      want_y[i].add(normal * static_cast<double>(gamma[c]));
      want_y[i].add(static_cast<double>(beta[c]));
      want_dx[i].add(static_cast<double>(dy[i]) * inverse * static_cast<double>(gamma[c]));
      dgamma[c].add(static_cast<double>(dy[i]) * normal);
      dbeta[c].add(static_cast<double>(dy[i]));
    });
    const double n = static_cast<double>(v.batch * v.spatial);
    expect_close(o.y, want_y, 6);
    expect_close(dx, want_dx, 4);
    expect_close(o.dgamma, dgamma, sizeof(T) == 4 ? 3 : n + 4);
    expect_close(o.dbeta, dbeta, sizeof(T) == 4 ? 2 : n + 4);
    expect_zero_padding(v, o.y);
    expect_zero_padding(v, dx);
  }
}

TYPED_TEST(BatchNorm, ChannelSumAndBias) {
  using T = TypeParam;
  for (const kernels::BatchNormView& v : views()) {
    const auto dy = activations<T>(v, 1, 0.1), bias = random_values<T>(v.channels, 2);
    auto out = unwritten<T>(v.channels);
    auto y = dy;
    kernels::generic::channel_sum<T>(v, dy.data(), out.data());
    kernels::generic::add_channel_bias<T>(v, y.data(), bias.data());
    std::vector<Exact> want(out.size());
    for_elements(v, [&](std::size_t c, std::size_t i) {
      want[c].add(static_cast<double>(dy[i]));
      ASSERT_EQ(y[i], dy[i] + bias[c]);
    });
    expect_close(out, want, sizeof(T) == 4 ? 2 : static_cast<double>(v.batch * v.spatial));
    expect_zero_padding(v, y);
  }
}

TYPED_TEST(BatchNorm, EmptyBatchIsNeutral) {
  using T = TypeParam;
  const kernels::BatchNormView v{.batch = 0, .channels = 3, .spatial = 4};
  Outputs<T> o(v);
  kernels::generic::batch_norm_forward<T>(v, nullptr, nullptr, nullptr, kEps, nullptr, o.mean.data(), o.inv_std.data(),
                                          o.sums.data());
  kernels::generic::batch_norm_backward<T>(v, nullptr, nullptr, nullptr, o.mean.data(), o.inv_std.data(), nullptr,
                                           o.dgamma.data(), o.dbeta.data());
  EXPECT_EQ(o.sums, std::vector<double>(6, 0.0));
  EXPECT_EQ(o.mean, std::vector<T>(3, T(0)));
  EXPECT_EQ(o.dgamma, std::vector<T>(3, T(0)));
  EXPECT_EQ(o.dbeta, std::vector<T>(3, T(0)));
  for (const T v_inv : o.inv_std) EXPECT_NEAR(static_cast<double>(v_inv), 1 / std::sqrt(kEps), 4e-5);
}

TYPED_TEST(BatchNorm, WorksInPlace) {
  using T = TypeParam;
  for (const std::int64_t block : {1, 16}) {
    const kernels::BatchNormView v{.batch = 2, .channels = 5, .spatial = 37, .block = block};
    auto x = activations<T>(v, 1, 0), dy = activations<T>(v, 2, 0);
    const auto input = x;
    Outputs<T> o(v);
    auto dx = unwritten<T>(v.elements());
    kernels::generic::batch_norm_forward<T>(v, x.data(), nullptr, nullptr, kEps, o.y.data(), o.mean.data(),
                                            o.inv_std.data(), o.sums.data());
    kernels::generic::batch_norm_forward<T>(v, x.data(), nullptr, nullptr, kEps, x.data(), o.mean.data(),
                                            o.inv_std.data(), o.sums.data());
    EXPECT_TRUE(same_bits(x, o.y));
    kernels::generic::batch_norm_backward<T>(v, input.data(), dy.data(), nullptr, o.mean.data(), o.inv_std.data(),
                                             dx.data(), nullptr, nullptr);
    kernels::generic::batch_norm_backward<T>(v, input.data(), dy.data(), nullptr, o.mean.data(), o.inv_std.data(),
                                             dy.data(), nullptr, nullptr);
    EXPECT_TRUE(same_bits(dx, dy));
  }
}

TYPED_TEST(BatchNorm, DoesNotDependOnThreads) {
  using T = TypeParam;
  for (const std::int64_t block : {1, 8, 16}) {
    const kernels::BatchNormView v{.batch = 4, .channels = 37, .spatial = 333, .block = block};
    const auto x = activations<T>(v, 1, 2), dy = activations<T>(v, 2, 0);
    expect_thread_invariant([&] {
      Outputs<T> o(v);
      auto dx = unwritten<T>(v.elements());
      kernels::generic::batch_norm_forward<T>(v, x.data(), nullptr, nullptr, kEps, o.y.data(), o.mean.data(),
                                              o.inv_std.data(), o.sums.data());
      kernels::generic::batch_norm_backward<T>(v, x.data(), dy.data(), nullptr, o.mean.data(), o.inv_std.data(),
                                               dx.data(), o.dgamma.data(), o.dbeta.data());
      for (const auto* part : {&dx, &o.mean, &o.inv_std, &o.dgamma, &o.dbeta})
        o.y.insert(o.y.end(), part->begin(), part->end());
      return o.y;
    });
  }
}

TEST(BatchNorm, AnUnknownBlockIsAnError) {
  const kernels::BatchNormView v{.batch = 1, .channels = 4, .spatial = 1, .block = 4};
  float out[4];
  EXPECT_THROW(kernels::generic::channel_sum<float>(v, out, out), Error);
}

}  // namespace
}  // namespace lockstep::generic

#include <string>

#include "lockstep/core/error.h"
#include "lockstep/kernels/generic/elementwise.h"
#include "lockstep/kernels/generic/reduce.h"
#include "tests/kernels/reference.h"

namespace lockstep::generic {
namespace {

template <class T>
class Elementwise : public ::testing::Test {};
TYPED_TEST_SUITE(Elementwise, FloatTypes);

constexpr std::int64_t kSizes[] = {0, 1, 7, 1000, 100003};

TYPED_TEST(Elementwise, ArithmeticIsExactToOneRounding) {
  using T = TypeParam;
  for (const std::int64_t n : kSizes) {
    const auto a = random_values<T>(n, 1), b = random_values<T>(n, 2);
    auto sums = unwritten<T>(n), line = sums, constant = sums;
    kernels::generic::add(n, a.data(), b.data(), sums.data());
    kernels::generic::scale_shift(n, T(3), T(-2), a.data(), line.data());
    kernels::generic::fill(n, T(4), constant.data());
    for (std::size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(sums[i], a[i] + b[i]);
      ASSERT_NEAR(static_cast<double>(line[i]), 3 * static_cast<double>(a[i]) - 2, 6 * kUnit<T>);
      ASSERT_EQ(constant[i], T(4));
    }
    auto in_place = a;
    kernels::generic::add(n, in_place.data(), b.data(), in_place.data());
    EXPECT_TRUE(same_bits(in_place, sums));
  }
}

TYPED_TEST(Elementwise, ReluKeepsNanAndPassesGradientsWhereOpen) {
  using T = TypeParam;
  const T nan = std::numeric_limits<T>::quiet_NaN(), inf = std::numeric_limits<T>::infinity();
  const std::vector<T> x{-1, 0, 2, nan, -inf, inf};
  std::vector<T> y(6), dx(6);
  kernels::generic::relu_forward<T>(6, x.data(), y.data());
  EXPECT_EQ(std::vector<T>(y.begin(), y.begin() + 3), (std::vector<T>{0, 0, 2}));
  EXPECT_TRUE(std::isnan(y[3]));
  EXPECT_EQ(y[4], T(0));
  EXPECT_EQ(y[5], inf);
  const std::vector<T> dy{inf, 5, 6, 7, 8, 9};
  kernels::generic::relu_backward<T>(6, y.data(), dy.data(), dx.data());
  EXPECT_EQ(dx, (std::vector<T>{0, 0, 6, 7, 0, 9}));
}

TYPED_TEST(Elementwise, DropoutIsAFunctionOfSampleAndElement) {
  using T = TypeParam;
  const std::vector<std::int64_t> ids{5, 1000000007, 2};
  const kernels::generic::DropoutOptions o{
      .samples = 3, .per_sample = 1023, .p = 0.25, .key = 11, .step = 6, .sample_ids = ids.data()};
  const auto x = random_values<T>(3 * 1023, 1, 2);
  auto y = unwritten<T>(3 * 1023);
  kernels::generic::dropout(o, x.data(), y.data());
  std::size_t kept = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::uint64_t element = i % 1023;
    const Philox words = philox(11, element / 4, mix(6, static_cast<std::uint64_t>(ids[i / 1023])));
    const bool keep = unit_interval(words[element % 4]) >= 0.25;
    kept += keep;
    ASSERT_EQ(y[i], keep ? x[i] * static_cast<T>(1 / 0.75) : T(0));
  }
  EXPECT_NEAR(static_cast<double>(kept) / 3069, 0.75, 0.04);  // 5 standard deviations
  // Sample 2 alone, as another rank may have it, in place.
  std::vector<T> alone(x.begin() + 2 * 1023, x.end());
  kernels::generic::DropoutOptions one = o;
  one.samples = 1;
  one.sample_ids = &ids[2];
  kernels::generic::dropout(one, alone.data(), alone.data());
  EXPECT_TRUE(same_bits(alone, std::vector<T>(y.begin() + 2 * 1023, y.end())));
  one.step = 7;
  auto later = alone;
  kernels::generic::dropout(one, x.data() + 2 * 1023, later.data());
  EXPECT_FALSE(same_bits(alone, later));
}

TYPED_TEST(Elementwise, DropoutAtItsLimits) {
  using T = TypeParam;
  const std::int64_t id = 3;
  kernels::generic::DropoutOptions o{.samples = 1, .per_sample = 9, .p = 0, .sample_ids = &id};
  const auto x = random_values<T>(9, 1);
  auto y = unwritten<T>(9);
  kernels::generic::dropout(o, x.data(), y.data());
  EXPECT_TRUE(same_bits(x, y));
  o.p = 1;
  kernels::generic::dropout(o, x.data(), y.data());
  EXPECT_EQ(y, std::vector<T>(9, T(0)));
  o.p = 1.5;
  EXPECT_THROW(kernels::generic::dropout(o, x.data(), y.data()), Error);
  o = {.samples = 0, .per_sample = 9};
  kernels::generic::dropout<T>(o, nullptr, nullptr);
  o = {.samples = 2, .per_sample = 0};
  kernels::generic::dropout<T>(o, nullptr, nullptr);
}

TYPED_TEST(Elementwise, NoiseIsAFunctionOfSampleAndElement) {
  using T = TypeParam;
  const std::vector<std::int64_t> ids{5, 1000000007, 2};
  const kernels::generic::NoiseOptions o{
      .samples = 3, .per_sample = 1023, .key = 11, .step = 6, .sample_ids = ids.data()};
  auto y = unwritten<T>(3 * 1023);
  kernels::generic::normal_noise(o, y.data());
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    sum += static_cast<double>(y[i]);
    squares += static_cast<double>(y[i] * y[i]);
  }
  for (std::size_t sample = 0; sample < 3; ++sample) {
    RandomStream random(11, mix(6, static_cast<std::uint64_t>(ids[sample])));
    for (std::size_t i = 0; i < 1023; ++i) ASSERT_EQ(y[1023 * sample + i], static_cast<T>(random.normal()));
  }
  EXPECT_NEAR(sum / 3069, 0, 0.09);      // 5 standard deviations
  EXPECT_NEAR(squares / 3069, 1, 0.13);  // likewise
  // Sample 2 alone, as another rank may have it, and in the next step.
  auto alone = unwritten<T>(1023), later = alone;
  kernels::generic::NoiseOptions one = o;
  one.samples = 1;
  one.sample_ids = &ids[2];
  kernels::generic::normal_noise(one, alone.data());
  EXPECT_TRUE(same_bits(alone, std::vector<T>(y.end() - 1023, y.end())));
  one.step = 7;
  kernels::generic::normal_noise(one, later.data());
  EXPECT_FALSE(same_bits(alone, later));
  one.per_sample = 0;
  kernels::generic::normal_noise<T>(one, nullptr);
}

TYPED_TEST(Elementwise, DoesNotDependOnThreads) {
  using T = TypeParam;
  const std::int64_t n = 200003, id[2] = {3, 4};
  const auto a = random_values<T>(n, 1), b = random_values<T>(n, 2);
  expect_thread_invariant([&] {
    auto y = unwritten<T>(n), columns = unwritten<T>(407);
    kernels::generic::map(n, a.data(), y.data(), [](T v) { return v / (T(1) + v * v); });
    kernels::generic::add(n, y.data(), b.data(), y.data());
    kernels::generic::dropout<T>({.samples = 2, .per_sample = 90001, .sample_ids = id}, y.data(), y.data());
    kernels::generic::column_sum<T>(491, 407, a.data(), columns.data());
    y.resize(y.size() + 2 * 4001);
    kernels::generic::normal_noise<T>({.samples = 2, .per_sample = 4001, .sample_ids = id}, y.data() + n);
    y.insert(y.end(), columns.begin(), columns.end());
    return y;
  });
}

template <class T>
class Reduce : public ::testing::Test {};
TYPED_TEST_SUITE(Reduce, FloatTypes);

TYPED_TEST(Reduce, ColumnSumMatchesDefinition) {
  using T = TypeParam;
  struct Case {
    std::int64_t rows, cols;
  };
  for (const auto [rows, cols] : {Case{0, 3}, Case{1, 1}, Case{5, 17}, Case{33, 64}, Case{9, 131}, Case{4, 0}}) {
    const auto x = random_values<T>(rows * cols, 6);
    auto out = unwritten<T>(cols);
    kernels::generic::column_sum(rows, cols, x.data(), out.data());
    std::vector<Exact> want(out.size());
    for (std::size_t i = 0; i < x.size(); ++i) want[i % want.size()].add(static_cast<double>(x[i]));
    expect_close(out, want, sizeof(T) == 4 ? 2 : static_cast<double>(rows + 1));
  }
}

template <class T>
class MeanSquaredError : public ::testing::Test {};
TYPED_TEST_SUITE(MeanSquaredError, FloatTypes);

}  // namespace
}  // namespace lockstep::generic

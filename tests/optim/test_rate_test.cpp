// The learning-rate range test: its rates, when it stops, and the rate that it finds on curves of a known form.
#include "lockstep/optim/rate_test.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lockstep/core/error.h"

namespace lockstep::optim {
namespace {

template <class LossOfRate>
RateTest::Result run(LossOfRate loss, double low = 1e-6, double high = 10, std::int64_t steps = 141) {
  RateTest test(low, high, steps);
  while (!test.is_over()) test.add(loss(test.next_rate()));
  return test.result();
}

TEST(RateTest, RatesGrowByOneFactorFromTheFirstToTheLast) {
  const RateTest::Result result = run([](double) { return 1.0; }, 1e-4, 1e-1, 31);
  ASSERT_EQ(result.rows.size(), 31U);
  for (std::size_t i = 0; i < 31; ++i)
    EXPECT_NEAR(result.rows[i].rate, 1e-4 * std::pow(10, 0.1 * static_cast<double>(i)), 1e-12);
  EXPECT_FALSE(result.diverged);
  EXPECT_FALSE(result.steepest) << "a constant does not fall";
}

// A loss that falls as a logistic curve over log10(rate), and explodes after it.
TEST(RateTest, FindsTheSteepestDescent) {
  const auto loss = [](double rate) { return 2 / (1 + std::exp(3 * (std::log10(rate) + 2))) + 5 * rate * rate * rate; };
  const RateTest::Result result = run(loss);
  ASSERT_TRUE(result.steepest);
  EXPECT_NEAR(std::log10(result.rows[*result.steepest].rate), -2, 0.051) << "the centre of the curve";
  EXPECT_TRUE(result.diverged);
  EXPECT_LT(result.rows.size(), 141U);
  EXPECT_GT(result.lowest, *result.steepest);
}

TEST(RateTest, SmoothsWithWeightsThatFallToBothSides) {
  const RateTest::Result result = run([n = 0](double) mutable { return n++ == 20 ? 2.0 : 1.0; }, 1, 10, 40);
  // Half a window of two rows: weights 1, 2, 3, 2, 1.
  const double expected[] = {1, 1, 1 + 1.0 / 9, 1 + 2.0 / 9, 1 + 3.0 / 9, 1 + 2.0 / 9, 1 + 1.0 / 9, 1};
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(result.rows[16 + i].smoothed, expected[i], 1e-12) << i;
}

TEST(RateTest, StopsWhereTheLossDivergesOrIsNotFinite) {
  RateTest test(1e-3, 1, 100);
  for (int i = 0; i < 10; ++i) test.add(1);
  EXPECT_FALSE(test.is_over());
  test.add(30);  // the running mean is 0.9 + 3
  EXPECT_FALSE(test.is_over()) << "one loss alone is noise";
  test.add(30);
  EXPECT_TRUE(test.is_over());
  EXPECT_TRUE(test.diverged());
  test.add(1);
  EXPECT_EQ(test.result().rows.size(), 12U) << "after its end";

  RateTest other(1e-3, 1, 100);
  other.add(1);
  other.add(std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(other.diverged());
  EXPECT_EQ(other.result().rows.size(), 1U);
}

TEST(RateTest, ALossBelowZeroDivergesByItsSize) {
  RateTest test(1e-3, 1, 100);
  test.add(2);
  for (int i = 0; i < 60; ++i) test.add(-1);
  EXPECT_FALSE(test.is_over());
  for (int i = 0; i < 5; ++i) test.add(4);
  EXPECT_FALSE(test.is_over());
  for (int i = 0; i < 3; ++i) test.add(40);
  EXPECT_TRUE(test.diverged());
}

TEST(RateTest, RefusesRatesThatDoNotGrow) {
  EXPECT_THROW(RateTest(0, 1, 10), Error);
  EXPECT_THROW(RateTest(1, 1, 10), Error);
  EXPECT_THROW(RateTest(1, 2, 1), Error);
  EXPECT_THROW(RateTest(1, std::numeric_limits<double>::infinity(), 10), Error);
}

}  // namespace
}  // namespace lockstep::optim

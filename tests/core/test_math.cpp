// Elementary functions against long double: how far from the true value, and what they are at their edges.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "lockstep/core/math.h"
#include "lockstep/core/random.h"

namespace lockstep {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

double units(double got, long double want) {
  const double near = std::abs(static_cast<double>(want));
  const long double unit = std::nextafter(near, kInf) - near;
  return static_cast<double>(std::abs(static_cast<long double>(got) - want) / unit);
}

using Exact = std::function<long double(long double)>;

// At random numbers in [low, high), or with random logarithms there.
void expect_units(const char* name, double (*f)(double), const Exact& exact, double low, double high, double most,
                  bool logarithmic = false) {
  RandomStream random(1, 2);
  double worst = 0, at = 0;
  for (int i = 0; i < 50000; ++i) {
    const double x = logarithmic ? std::exp(random.uniform(std::log(low), std::log(high))) : random.uniform(low, high);
    const double error = units(f(x), exact(static_cast<long double>(x)));
    if (!(error <= worst)) {
      worst = error;
      at = x;
    }
  }
  EXPECT_LE(worst, most) << name << " at " << at;
}

TEST(Math, IsWithinTwoUnits) {
  const Exact exponential = [](long double x) { return std::exp(x); },
              logarithm = [](long double x) { return std::log(x); };
  const Exact tangent = [](long double x) { return std::tanh(x); }, error = [](long double x) { return std::erf(x); };
  const Exact sine = [](long double x) { return std::sin(x); }, cosine = [](long double x) { return std::cos(x); };
  expect_units("exp", math::exp, exponential, -1, 1, 1);
  expect_units("exp", math::exp, exponential, -740, 709, 1.01);
  expect_units("log", math::log, logarithm, 0.5, 2, 1);
  expect_units("log", math::log, logarithm, 1e-310, 1e308, 1, true);
  expect_units("tanh", math::tanh, tangent, -20, 20, 2);
  expect_units("tanh", math::tanh, tangent, 1e-300, 1, 2, true);
  expect_units(
      "sigmoid", math::sigmoid, [](long double x) { return 1 / (1 + std::exp(-x)); }, -40, 40, 2);
  expect_units("erf", math::erf, error, -1.2, 1.2, 2);
  expect_units("erf", math::erf, error, 0.9, 7, 2);
  for (const auto& [low, high, logarithmic] :
       {std::tuple{-4.0, 4.0, false}, {-12800.0, 12800.0, false}, {12800.0, 1e15, true}}) {
    expect_units("sin", math::sin, sine, low, high, 1, logarithmic);
    expect_units("cos", math::cos, cosine, low, high, 1, logarithmic);
  }
  RandomStream random(3, 4);
  for (int i = 0; i < 50000; ++i) {
    const double x = std::exp(random.uniform(-7, 7)), y = random.uniform(-90, 90);
    ASSERT_LE(units(math::pow(x, y), std::pow(static_cast<long double>(x), static_cast<long double>(y))), 1.5)
        << x << " to the " << y;
  }
}

TEST(Math, AtItsEdges) {
  EXPECT_EQ(math::exp(0), 1);
  EXPECT_EQ(math::exp(kInf), kInf);
  EXPECT_EQ(math::exp(-kInf), 0);
  EXPECT_EQ(math::exp(710), kInf);
  EXPECT_EQ(math::log(1), 0);
  EXPECT_EQ(math::log(0), -kInf);
  EXPECT_EQ(math::log(kInf), kInf);
  EXPECT_TRUE(std::isnan(math::log(-1)));
  EXPECT_EQ(math::tanh(1e9), 1);
  EXPECT_EQ(math::tanh(-kInf), -1);
  EXPECT_TRUE(std::signbit(math::tanh(-0.0)));
  EXPECT_EQ(math::sigmoid(-1e4), 0);
  EXPECT_EQ(math::sigmoid(1e4), 1);
  EXPECT_EQ(math::erf(kInf), 1);
  EXPECT_EQ(math::sin(0), 0);
  EXPECT_EQ(math::cos(0), 1);
  EXPECT_NEAR(math::sin(1e22), -0.8522008497671888, 1e-15);
  EXPECT_NEAR(math::sin(1e300), -0.8178819121159085, 1e-15);
  EXPECT_TRUE(std::isnan(math::cos(kInf)));
  for (const auto f : {math::exp, math::log, math::tanh, math::sigmoid, math::erf, math::sin, math::cos})
    EXPECT_TRUE(std::isnan(f(kNaN)));
}

TEST(Math, PowersAreAsInTheStandard) {
  const double numbers[] = {0.0, -0.0, 1,     -1,   2,     -2,     0.5,        -0.5,        3,
                            -3,  kInf, -kInf, kNaN, 1e300, -1e300, 0x1p52 + 1, -0x1p52 - 1, 0x1p53 + 2};
  for (const double x : numbers) {
    for (const double y : numbers) {
      const double got = math::pow(x, y), want = std::pow(x, y);
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(got)) << x << " to the " << y;
        continue;
      }
      EXPECT_EQ(std::signbit(got), std::signbit(want)) << x << " to the " << y;
      if (std::isinf(want) || want == 0) {
        EXPECT_EQ(got, want) << x << " to the " << y;
      } else {
        EXPECT_LE(units(got, static_cast<long double>(want)), 2) << x << " to the " << y;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep

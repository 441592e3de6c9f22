// The order of additions is part of the result: a reference with plain loops gives the same bits.
#include "lockstep/core/sum_of_squares.h"

#include <gtest/gtest.h>

#include <vector>

#include "lockstep/core/random.h"

namespace lockstep {
namespace {

double by_lanes(const std::vector<float>& values) {
  double lanes[8] = {}, sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    lanes[i % 8] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  for (const double lane : lanes) sum += lane;
  return sum;
}

TEST(SumOfSquares, AddsOverEightLanes) {
  RandomStream random(3, 0);
  std::vector<float> values;
  for (std::int64_t n = 0; n <= 41; ++n) {
    EXPECT_EQ(sum_of_squares(values.data(), n), by_lanes(values)) << n;
    values.push_back(static_cast<float>(random.uniform(-1e3, 1e3)));
  }
}

TEST(SumOfSquares, SeveralAreThoseOfEach) {
  RandomStream random(4, 0);
  std::vector<float> a, b;
  for (int i = 0; i < 29; ++i) {
    a.push_back(static_cast<float>(random.uniform(-1, 1)));
    b.push_back(static_cast<float>(random.uniform(-1e4, 1e4)));
  }
  const auto both = sums_of_squares<2>(29, [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    return std::array{static_cast<double>(a[at]), static_cast<double>(b[at])};
  });
  EXPECT_EQ(both[0], by_lanes(a));
  EXPECT_EQ(both[1], by_lanes(b));
}

}  // namespace
}  // namespace lockstep

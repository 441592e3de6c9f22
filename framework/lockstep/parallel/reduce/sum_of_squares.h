// The sum of squares of n elements in f64, in a fixed order that depends neither on the rank nor on the width of
// vectors. Any thread.
#pragma once

#include <array>
#include <cstdint>

namespace lockstep::parallel {

template <class T>
double sum_of_squares(const T* values, std::int64_t n) {
  constexpr std::int64_t kLanes = 8;
  std::array<double, kLanes> lanes{};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t l = 0; l < kLanes; ++l) {
      const auto v = static_cast<double>(values[i + l]);
      lanes[static_cast<std::size_t>(l)] += v * v;
    }
  }
  for (; i < n; ++i)
    lanes[static_cast<std::size_t>(i % kLanes)] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  double sum = 0;
  for (double lane : lanes) sum += lane;
  return sum;
}

}  // namespace lockstep::parallel

// Sums of squares in f64, in an order of additions that depends on the number of elements alone: over eight lanes,
// which are added up at the end. Neither the width of vectors nor the rank changes a bit. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace lockstep {

// N sums of squares over i in [0, n): `terms(i)` returns the N numbers of element i, as std::array<double, N>.
template <std::size_t N, class Terms>
std::array<double, N> sums_of_squares(std::int64_t n, const Terms& terms) {
  constexpr std::int64_t kLanes = 8;
  std::array<std::array<double, kLanes>, N> lanes{};
  const auto add = [&](std::int64_t i, std::size_t lane) {
    const std::array<double, N> of_element = terms(i);
    for (std::size_t s = 0; s < N; ++s) lanes[s][lane] += of_element[s] * of_element[s];
  };
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t l = 0; l < kLanes; ++l) add(i + l, static_cast<std::size_t>(l));
  }
  for (; i < n; ++i) add(i, static_cast<std::size_t>(i % kLanes));
  std::array<double, N> sums{};
  for (std::size_t s = 0; s < N; ++s) {
    for (const double lane : lanes[s]) sums[s] += lane;
  }
  return sums;
}

template <class T>
double sum_of_squares(const T* values, std::int64_t n) {
  return sums_of_squares<1>(n, [&](std::int64_t i) { return std::array{static_cast<double>(values[i])}; })[0];
}

}  // namespace lockstep

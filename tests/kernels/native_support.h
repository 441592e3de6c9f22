// Shared by the tests of kernels/native: values in f32 and bf16, and the levels of this machine.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <vector>

#include "lockstep/core/bfloat16.h"
#include "lockstep/kernels/native/native_kernels.h"
#include "tests/kernels/reference.h"

namespace lockstep::native {

using ElementTypes = ::testing::Types<float, kernels::native::Bf16>;

template <class T>
constexpr double kRounding = sizeof(T) == 4 ? 0x1p-24 : 0x1p-8;  // relative, of one store

inline float to_float(float x) { return x; }
inline float to_float(kernels::native::Bf16 x) { return static_cast<float>(std::bit_cast<BFloat16>(x)); }
template <class T>
T from_float(float x) {
  if constexpr (sizeof(T) == 4) {
    return x;
  } else {
    return BFloat16(x).bits;
  }
}

template <class T>
std::vector<T> random_elements(std::int64_t n, std::uint64_t seed, double centre = 0) {
  std::vector<T> out;
  for (const float v : generic::random_values<float>(n, seed, centre)) out.push_back(from_float<T>(v));
  return out;
}

template <class T>
std::vector<double> as_double(const std::vector<T>& values) {
  std::vector<double> out;
  for (const T v : values) out.push_back(static_cast<double>(to_float(v)));
  return out;
}

// NaN, so that an element that a kernel forgets is seen.
template <class T>
std::vector<T> blank(std::int64_t n) {
  return std::vector<T>(static_cast<std::size_t>(n), from_float<T>(std::numeric_limits<float>::quiet_NaN()));
}

// Calls body(kernels) for every level of this machine.
template <class Body>
void for_levels(const Body& body) {
  for (const kernels::native::Level& level : kernels::native::levels()) {
    if (!level.supported) continue;
    SCOPED_TRACE(level.name);
    body(*level.kernels);
  }
}

}  // namespace lockstep::native

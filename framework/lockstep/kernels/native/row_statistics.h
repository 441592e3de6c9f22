// The statistics of one row, for layer, RMS and group norm.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

#include "lockstep/core/bfloat16.h"
#include "lockstep/core/partition.h"
#include "lockstep/kernels/native/native_kernels.h"

namespace lockstep::kernels::native {

template <class T>
const RowNormTable<T>& row_norm_table(const NativeKernels& kernels) {
  if constexpr (std::is_same_v<T, float>) {
    return kernels.row_norm_f32;
  } else {
    return kernels.row_norm_bf16;
  }
}

struct RowStatistics {
  float mean, inverse;  // mean: 0 for a row that is not centred; inverse: 1 / sqrt(variance + epsilon)
};

// The mean of a few elements. Values are shifted by it, so that sums in f32 keep the digits of the variance.
template <class T>
float row_pivot(std::int64_t n, const T* x) {
  const std::int64_t count = std::min<std::int64_t>(16, n);
  float sum = 0;
  for (std::int64_t k = 0; k < count; ++k) {
    const T value = x[part_of(n, count, k).begin];
    if constexpr (std::is_same_v<T, float>) {
      sum += value;
    } else {
      sum += static_cast<float>(std::bit_cast<BFloat16>(value));
    }
  }
  return count > 0 ? sum / static_cast<float>(count) : 0;
}

template <class T>
RowStatistics row_statistics(const RowNormTable<T>& level, std::int64_t n, const T* x, bool centred, double epsilon) {
  const double count = static_cast<double>(std::max<std::int64_t>(n, 1));
  const float pivot = centred ? row_pivot(n, x) : 0;
  double sums[2];
  level.moments(n, x, pivot, sums);
  // The sum of squares about the mean is sum d^2 - (sum d)^2 / n (Chan, Golub and LeVeque 1983).
  const double squares = centred ? std::max(sums[1] - sums[0] * sums[0] / count, 0.0) : sums[1];
  const double mean = centred ? static_cast<double>(pivot) + sums[0] / count : 0;
  return {static_cast<float>(mean), static_cast<float>(1 / std::sqrt(squares / count + epsilon))};
}

}  // namespace lockstep::kernels::native

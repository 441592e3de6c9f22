// The statistics of synchronised batch norm, computed from the sums over all ranks.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "lockstep/core/error.h"

namespace lockstep::kernels {

// Makes mean and inv_std [channels] of moments [2 channels + 1]: the sum of x per channel, then of x^2, and the number
// of elements per channel. Throws Error for one element, which has no variance.
template <class T>
void batch_norm_statistics(std::int64_t channels, const double* moments, double eps, T* mean, T* inv_std) {
  check(
      moments[2 * channels] != 1, "batch_norm2d_sync",
      "all ranks together have one value per channel, whose variance is 0, so that nothing would be learned; expected "
      "at least 2 in training");
  const double count = std::max(moments[2 * channels], 1.0);
  for (std::int64_t c = 0; c < channels; ++c) {
    const double average = moments[c] / count;
    const double variance = std::max(moments[channels + c] / count - average * average, 0.0);
    mean[c] = static_cast<T>(average);
    inv_std[c] = static_cast<T>(1 / std::sqrt(variance + eps));
  }
}

}  // namespace lockstep::kernels

// The batch norm with ReLU that a Winograd convolution applies to its input while tiles are read, with the bits of
// batch_norm_apply, so that the normalised image is never stored.
#pragma once

#include <algorithm>
#include <cstdint>
#include <new>

#include "lockstep/kernels/native/batch_norm.h"

namespace lockstep::kernels::native {

// Floats of the lanes of a norm for so many blocks of channels.
inline std::int64_t norm_elements(std::int64_t blocks) {
  return blocks * static_cast<std::int64_t>(sizeof(NormaliseLanes) / sizeof(float));
}

// Writes the lanes of a norm to memory that is aligned to 64 bytes; channels that fill a block up stay 0. Returns null
// without a norm.
inline const NormaliseLanes* norm_lanes(const GivenNorm& norm, std::int64_t channels, float* memory) {
  if (norm.mean == nullptr) return nullptr;
  auto* const lanes = reinterpret_cast<NormaliseLanes*>(memory);
  for (std::int64_t first = 0; first < channels; first += kLanes) {
    NormaliseLanes& block = *new (lanes + first / kLanes) NormaliseLanes;
    for (std::int64_t l = 0; l < std::min<std::int64_t>(kLanes, channels - first); ++l) {
      block.mean[l] = norm.mean[first + l];
      block.scale[l] = norm.gamma[first + l] * norm.inv_std[first + l];
      block.shift[l] = norm.beta[first + l];
    }
  }
  return lanes;
}

}  // namespace lockstep::kernels::native

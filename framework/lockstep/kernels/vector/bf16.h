// One bf16 at a time, for code around the kernels; arrays take convert() of elementwise.h.
#pragma once

#include <bit>
#include <cstdint>

#include "lockstep/kernels/vector/tables.h"

namespace lockstep::vector {

constexpr float to_float(float x) { return x; }
constexpr float to_float(Bf16 x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16); }

// To nearest even; a NaN stays one.
constexpr Bf16 to_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (x != x) return static_cast<Bf16>(bits >> 16 | 0x40);
  return static_cast<Bf16>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace lockstep::vector

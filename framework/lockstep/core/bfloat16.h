// The upper 16 bits of a float: the range of f32 with 8 bits of precision. For storage only; arithmetic is in f32.
#pragma once

#include <bit>
#include <cstdint>

namespace lockstep {

struct BFloat16 {
  std::uint16_t bits = 0;

  BFloat16() = default;
  // Rounds to nearest, ties to even; a NaN stays one.
  explicit constexpr BFloat16(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    const bool is_nan = (word & 0x7fffffffU) > 0x7f800000U;
    bits = static_cast<std::uint16_t>(is_nan ? (word >> 16) | 0x40U : (word + 0x7fffU + ((word >> 16) & 1U)) >> 16);
  }
  explicit constexpr operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
  bool operator==(const BFloat16&) const = default;  // compares bits
};

}  // namespace lockstep

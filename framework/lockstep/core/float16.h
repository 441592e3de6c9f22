// IEEE 754 binary16: 5 bits of exponent, 11 of precision. For storage only; arithmetic is in f32.
#pragma once

#include <bit>
#include <cstdint>

namespace lockstep {

struct Float16 {
  std::uint16_t bits = 0;

  Float16() = default;
  // Rounds to nearest, ties to even; beyond 65504 it is infinite; a NaN stays one.
  explicit constexpr Float16(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (word >> 16) & 0x8000U, magnitude = word & 0x7fffffffU;
    std::uint32_t half = 0;
    if (magnitude > 0x7f800000U) {
      half = 0x7e00U;
    } else if (magnitude >= 0x477ff000U) {  // from 65520 on the nearest is infinity
      half = 0x7c00U;
    } else if (magnitude >= 0x38800000U) {  // normal: rebias the exponent, round the 13 bits that go
      const std::uint32_t rebased = magnitude - 0x38000000U;
      half = (rebased + 0xfffU + ((rebased >> 13) & 1U)) >> 13;
    } else {  // subnormal: adding 0.5 leaves multiples of 2^-24 in the low bits, rounded by the addition
      half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000U;
    }
    bits = static_cast<std::uint16_t>(sign | half);
  }
  explicit constexpr operator float() const {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16, magnitude = bits & 0x7fffU;
    if (magnitude >= 0x7c00U) return std::bit_cast<float>(sign | 0x7f800000U | (magnitude & 0x3ffU) << 13);
    if (magnitude >= 0x400U) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000U));
    const float subnormal = static_cast<float>(magnitude) * 0x1p-24F;
    return sign != 0 ? -subnormal : subnormal;
  }
  bool operator==(const Float16&) const = default;  // compares bits
};

}  // namespace lockstep

// Float16 against a reference that works by values and tables, over all halves and what lies between them.
#include "lockstep/core/float16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace lockstep {
namespace {

// By definition: (-1)^s 2^(e - 15) (1 + m / 1024), subnormal 2^-14 m / 1024.
double value_of(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f, mantissa = bits & 0x3ff;
  double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  if (exponent == 31) magnitude = mantissa == 0 ? INFINITY : NAN;
  return std::copysign(magnitude, (bits & 0x8000) != 0 ? -1.0 : 1.0);
}

TEST(Float16, WidensAllHalvesExactly) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = std::bit_cast<Float16>(static_cast<std::uint16_t>(bits));
    const auto got = static_cast<float>(half);
    const double expected = value_of(half.bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(got)) << bits;
      ASSERT_TRUE(std::isnan(static_cast<float>(Float16(got)))) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(got), expected) << bits;
      ASSERT_EQ(std::signbit(got), (bits & 0x8000) != 0) << bits;
      ASSERT_EQ(Float16(got).bits, bits);
    }
  }
}

// Between each half and the next: below, at and above the middle, where the even one of the two is nearest.
TEST(Float16, RoundsToNearestEven) {
  for (std::uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const double low = value_of(static_cast<std::uint16_t>(bits));
    // Past the largest comes what the next exponent would begin with.
    const double high = bits == 0x7bff ? 65536 : value_of(static_cast<std::uint16_t>(bits + 1));
    const auto middle = static_cast<float>((low + high) / 2);
    ASSERT_EQ(static_cast<double>(middle), (low + high) / 2);
    for (const float sign : {1.0F, -1.0F}) {
      const std::uint32_t s = sign < 0 ? 0x8000 : 0;
      ASSERT_EQ(Float16(sign * std::nextafter(middle, 0.0F)).bits, s | bits);
      ASSERT_EQ(Float16(sign * middle).bits, s | (bits + bits % 2));
      ASSERT_EQ(Float16(sign * std::nextafter(middle, INFINITY)).bits, s | (bits + 1));
    }
  }
}

TEST(Float16, KeepsWhatIsBeyondItsRange) {
  for (const float huge : {65520.0F, 1e6F, std::numeric_limits<float>::max(), std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(Float16(huge).bits, 0x7c00);
    EXPECT_EQ(Float16(-huge).bits, 0xfc00);
  }
  for (const float tiny :
       {0.0F, std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::min(), 0x1p-25F}) {
    EXPECT_EQ(Float16(tiny).bits, 0);
    EXPECT_EQ(Float16(-tiny).bits, 0x8000);
  }
  for (const std::uint32_t nan : {0x7fc00000U, 0x7f800001U, 0xff800001U, 0xffffffffU}) {
    const Float16 half(std::bit_cast<float>(nan));
    EXPECT_TRUE(std::isnan(static_cast<float>(half)));
    EXPECT_EQ(half.bits >> 15, nan >> 31);
  }
}

}  // namespace
}  // namespace lockstep

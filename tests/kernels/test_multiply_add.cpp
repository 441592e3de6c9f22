// The multiply-add of a source that is compiled as this one is: at the baseline of x86-64 the emulated one.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#define LOCKSTEP_LEVEL probe
#include "lockstep/kernels/native/levels/registers.h"

namespace lockstep::kernels::native::probe {
namespace {

// Each lane of its own, as one doubtful lane decides how all are computed.
void expect_rounded_once(float a, float b, float c) {
  for (int lane = 0; lane < kNative; ++lane) {
    NativeF32 x = NativeF32{} + 1.5f, y = NativeF32{} + 3.0f, z = NativeF32{} + 0.25f;
    x[lane] = a, y[lane] = b, z[lane] = c;
    const NativeF32 found = multiply_add(x, y, z);
    for (int l = 0; l < kNative; ++l) {
      const float expected = std::fma(x[l], y[l], z[l]);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(found[l])) << a << " * " << b << " + " << c;
      } else {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(expected), std::bit_cast<std::uint32_t>(found[l]))
            << std::hexfloat << x[l] << " * " << y[l] << " + " << z[l] << ", lane " << l << " of " << a << " in lane "
            << lane;
      }
    }
  }
}

TEST(MultiplyAdd, OfAnyBits) {
  std::mt19937 random(7);
  const auto any = [&] { return std::bit_cast<float>(static_cast<std::uint32_t>(random())); };
  for (int i = 0; i < 20000; ++i) expect_rounded_once(any(), any(), any());
}

TEST(MultiplyAdd, OfSumsThatCancelOrAreSubnormal) {
  std::mt19937 random(8);
  std::uniform_real_distribution<float> mantissa(1, 2);
  std::uniform_int_distribution<int> exponent(-80, -60), near(-3, 3), sign(0, 1);
  for (int i = 0; i < 20000; ++i) {
    const float a = std::ldexp(mantissa(random), exponent(random)), b = std::ldexp(mantissa(random), exponent(random));
    const float c = std::ldexp(a * b * mantissa(random), near(random));
    expect_rounded_once(a, sign(random) != 0 ? -b : b, c);
  }
}

// c and half of its last bit, and so little more or less that f64 rounds it away.
TEST(MultiplyAdd, BesideTheMiddleOfTwoNumbers) {
  std::mt19937 random(9);
  std::uniform_real_distribution<float> mantissa(1, 2);
  for (const int exponent : {0, 40, 127, -60, -100}) {
    for (int i = 0; i < 500; ++i) {
      const float c = std::ldexp(mantissa(random), exponent);
      const float half = (std::nextafter(c, std::numeric_limits<float>::infinity()) - c) / 2;
      for (const float sign : {1.0f, -1.0f}) {
        for (const float off : {-0x1p-20f, 0.0f, 0x1p-20f}) {
          expect_rounded_once(1 + 0x1p-20f, sign * half * (1 - off), sign * c);
          expect_rounded_once(1 + off, sign * half, -sign * c);
          // The exact product is half * (1 + 2^-36).
          expect_rounded_once(1 + 0x1p-12f, sign * half * (1 - 0x1p-12f + 0x1p-24f), sign * c);
        }
      }
    }
  }
}

TEST(MultiplyAdd, BesideTheMiddleOfTwoSubnormalNumbers) {
  std::mt19937 random(10);
  std::uniform_int_distribution<int> multiple(1 << 13, (1 << 23) - 1);
  for (int i = 0; i < 2000; ++i) {
    const float c = std::ldexp(static_cast<float>(multiple(random)), -149);
    for (const float off : {-0x1p-20f, 0.0f, 0x1p-20f}) {
      expect_rounded_once(std::ldexp(1 + off, -75), std::ldexp(1 - off, -75), c);
      expect_rounded_once(std::ldexp(1 + off, -75), -std::ldexp(1.0f, -75), c);
      expect_rounded_once(std::ldexp(1 + 0x1p-12f, -75), std::ldexp(1 - 0x1p-12f + 0x1p-24f, -75), c);
    }
  }
}

TEST(MultiplyAdd, OfZerosAndInfinities) {
  const float inf = std::numeric_limits<float>::infinity(), most = std::numeric_limits<float>::max();
  for (const float a : {0.0f, -0.0f, 1.0f, -1.0f, inf, -inf, most, -most, std::numeric_limits<float>::denorm_min()})
    for (const float b : {0.0f, -0.0f, 1.0f, 2.0f, 1 + 0x1p-23f, inf})
      for (const float c : {0.0f, -0.0f, 1.0f, -1.0f, inf, -inf, most, -most, std::numeric_limits<float>::denorm_min()})
        expect_rounded_once(a, b, c);
}

}  // namespace
}  // namespace lockstep::kernels::native::probe

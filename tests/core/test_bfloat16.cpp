#include "lockstep/core/bfloat16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace lockstep {
namespace {

float rounded(float x) { return static_cast<float>(BFloat16(x)); }

TEST(BFloat16, RoundsToNearestEvenAndKeepsNaN) {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();
  const float half_step = 0x1p-8F;
  EXPECT_EQ(rounded(1 + half_step), 1);                      // a tie, down to even
  EXPECT_EQ(rounded(1 + 3 * half_step), 1 + 4 * half_step);  // a tie, up to even
  EXPECT_EQ(rounded(1 + half_step + 0x1p-23F), 1 + 2 * half_step);
  EXPECT_EQ(rounded(std::numeric_limits<float>::max()), kInf);
  EXPECT_EQ(rounded(-kInf), -kInf);
  EXPECT_TRUE(std::isnan(rounded(kNaN)));
  EXPECT_TRUE(std::isnan(rounded(std::bit_cast<float>(0x7f800001U))));  // its payload is in the lower half
}

}  // namespace
}  // namespace lockstep

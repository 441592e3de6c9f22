#include <algorithm>
#include <bit>
#include <cmath>

#include "lockstep/kernels/native/elementwise.h"
#include "tests/kernels/native_support.h"

namespace lockstep::native {
namespace {

using generic::same_bits;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();
const std::vector<std::int64_t> kSizes{0, 1, 15, 16, 17, 67, 4099, 100003};

template <class T>
class NativeElementwise : public ::testing::Test {};
TYPED_TEST_SUITE(NativeElementwise, ElementTypes);

TEST(NativeConvert, EveryLevelConvertsAsOneAtATimeDoes) {
  const float tie_down = 0x1.01p0F, tie_up = 0x1.03p0F, above_tie = 0x1.010002p0F;
  const float largest = std::numeric_limits<float>::max(), low_nan = std::bit_cast<float>(0x7f800001U);
  std::vector<float> x{0, -0.0F, kNaN, -kNaN, low_nan, kInf, -kInf, largest, 1e-45F, 0x1p-130F};
  x.insert(x.end(), {tie_down, tie_up, above_tie});
  RandomStream random(1, 2);
  while (x.size() < 5003) x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random.uniform(0, 1) * 0x1p32)));
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<kernels::native::Bf16> want;
  std::vector<float> back;
  for (const float v : x) want.push_back(from_float<kernels::native::Bf16>(v));
  for (const kernels::native::Bf16 v : want) back.push_back(to_float(v));
  for_levels([&](const kernels::NativeKernels& kernels) {
    std::vector<kernels::native::Bf16> half(x.size());
    std::vector<float> full(x.size());
    kernels::native::convert(n, x.data(), half.data(), kernels);
    kernels::native::convert(n, half.data(), full.data(), kernels);
    EXPECT_EQ(half, want);
    EXPECT_TRUE(same_bits(full, back));
  });
}

TYPED_TEST(NativeElementwise, MatchesOneAtATimeAtEverySize) {
  using T = TypeParam;
  for_levels([](const kernels::NativeKernels& kernels) {
    for (const std::int64_t n : kSizes) {
      const auto a = random_elements<T>(n, 1), b = random_elements<T>(n, 2);
      auto y = blank<T>(n + 1), sum = y, dx = y;  // one more: nothing is written beyond n
      kernels::native::relu<T>(n, a.data(), y.data(), kernels);
      kernels::native::add<T>(n, a.data(), b.data(), sum.data(), kernels);
      kernels::native::relu_backward<T>(n, y.data(), b.data(), dx.data(), kernels);
      for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
        const float u = to_float(a[i]), v = to_float(b[i]);
        ASSERT_EQ(y[i], from_float<T>(std::max(u, 0.0F)));
        ASSERT_EQ(sum[i], from_float<T>(u + v));
        ASSERT_EQ(dx[i], u > 0 ? b[i] : T{});
      }
      for (const auto* out : {&y, &sum, &dx}) ASSERT_TRUE(std::isnan(to_float(out->back())));
    }
  });
}

TYPED_TEST(NativeElementwise, NaNStaysAndInfinityIsMasked) {
  using T = TypeParam;
  for_levels([](const kernels::NativeKernels& kernels) {
    const std::vector<T> x(33, from_float<T>(kNaN)), negative(33, from_float<T>(-1)), huge(33, from_float<T>(kInf));
    std::vector<T> y(33), dx(33);
    kernels::native::relu<T>(33, x.data(), y.data(), kernels);
    for (const T v : y) EXPECT_TRUE(std::isnan(to_float(v)));
    kernels::native::relu_backward<T>(33, negative.data(), huge.data(), dx.data(), kernels);
    EXPECT_EQ(dx, std::vector<T>(33));
  });
}

TYPED_TEST(NativeElementwise, WorksInPlace) {
  using T = TypeParam;
  for_levels([](const kernels::NativeKernels& kernels) {
    const auto a = random_elements<T>(1003, 1), b = random_elements<T>(1003, 2);
    auto want = a, first = a, second = b;
    kernels::native::add<T>(1003, a.data(), b.data(), want.data(), kernels);
    kernels::native::add<T>(1003, first.data(), b.data(), first.data(), kernels);
    kernels::native::add<T>(1003, a.data(), second.data(), second.data(), kernels);
    EXPECT_TRUE(same_bits(first, want));
    EXPECT_TRUE(same_bits(second, want));
  });
}

}  // namespace
}  // namespace lockstep::native

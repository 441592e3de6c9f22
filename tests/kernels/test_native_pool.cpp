#include <bit>
#include <set>

#include "lockstep/core/bfloat16.h"
#include "lockstep/kernels/generic/pool.h"
#include "lockstep/kernels/native/pool.h"
#include "tests/kernels/native_support.h"

namespace lockstep::native {
namespace {

template <class T>
class NativePool : public ::testing::Test {};
TYPED_TEST_SUITE(NativePool, ElementTypes);

std::vector<kernels::PoolGeometry> pool_geometries() {
  std::vector<kernels::PoolGeometry> all;
  for (const std::int64_t block : {1, 8, 16}) {
    for (const std::int64_t channels : {1, 8, 17}) {
      for (const bool ceil : {false, true}) {
        const auto put = [&](kernels::PoolGeometry g) {
          g.batch = 2;
          g.channels = channels;
          g.ceil_mode = ceil;
          g.block = block;
          all.push_back(g);
        };
        for (const std::int64_t w : {5, 10, 28, 31, 33, 70})
          put({.in_h = 7, .in_w = w, .kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2});
        put({.in_h = 9,
             .in_w = 37,
             .kernel_h = 3,
             .kernel_w = 3,
             .stride_h = 2,
             .stride_w = 2,
             .padding_h = 1,
             .padding_w = 1});
        for (const std::int64_t side : {1, 2, 3, 4, 6})
          put({.in_h = side,
               .in_w = 7 - side,
               .kernel_h = 3,
               .kernel_w = 3,
               .stride_h = 2,
               .stride_w = 2,
               .padding_h = side % 2,
               .padding_w = side < 3 ? 0 : 1});
        put({.in_h = 6,
             .in_w = 20,
             .kernel_h = 3,
             .kernel_w = 5,
             .stride_h = 1,
             .stride_w = 1,
             .padding_h = 1,
             .padding_w = 2});
        put({.in_h = 8,
             .in_w = 40,
             .kernel_h = 3,
             .kernel_w = 2,
             .stride_h = 3,
             .stride_w = 2,
             .padding_h = 1,
             .padding_w = 1,
             .dilation_h = 2,
             .dilation_w = 3});
        // Windows without an element.
        put({.in_h = 1,
             .in_w = 1,
             .kernel_h = 2,
             .kernel_w = 2,
             .padding_h = 1,
             .padding_w = 1,
             .dilation_h = 2,
             .dilation_w = 2});
        if (block == 1) continue;  // plain images have a depth of 1
        for (const std::int64_t depth : {1, 4, 5})
          put({.in_d = depth,
               .in_h = 7,
               .in_w = 9,
               .kernel_d = 2,
               .kernel_h = 2,
               .kernel_w = 2,
               .stride_d = 2,
               .stride_h = 2,
               .stride_w = 2});
        put({.in_d = 7,
             .in_h = 4,
             .in_w = 9,
             .kernel_d = 3,
             .kernel_h = 1,
             .kernel_w = 4,
             .stride_d = 3,
             .stride_w = 4});
        put({.in_d = 5,
             .in_h = 6,
             .in_w = 7,
             .kernel_d = 3,
             .kernel_h = 3,
             .kernel_w = 3,
             .stride_d = 2,
             .stride_h = 2,
             .stride_w = 2,
             .padding_d = 1,
             .padding_h = 1,
             .padding_w = 1});
        put({.in_d = 3, .in_h = 9, .in_w = 9, .kernel_h = 3, .kernel_w = 3, .stride_d = 2, .padding_d = 0});
        put({.in_d = 6, .in_h = 5, .in_w = 5, .kernel_d = 2, .kernel_h = 2, .kernel_w = 2, .dilation_d = 3});
      }
    }
  }
  return all;
}

// Values with ties, NaN, infinities; padding lanes are 0.
template <class T>
std::vector<T> values(const kernels::PoolGeometry& g) {
  const std::int64_t plane = g.in_spatial();
  std::vector<T> x = random_elements<T>(g.batch * g.blocks() * g.block * plane, 1);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    x[i] = from_float<T>(std::round(to_float(x[i]) * 3));
    if (at % 41 == 7) x[i] = from_float<T>(std::numeric_limits<float>::quiet_NaN());
    if (at % 13 == 3) x[i] = from_float<T>(-std::numeric_limits<float>::infinity());
    const std::int64_t channel = at / (plane * g.block) % g.blocks() * g.block + at % g.block;
    if (channel >= g.channels) x[i] = from_float<T>(0);
  }
  return x;
}

// The generic kernels' name for the type.
const float* generic_pointer(const float* p) { return p; }
float* generic_pointer(float* p) { return p; }
const BFloat16* generic_pointer(const kernels::native::Bf16* p) { return reinterpret_cast<const BFloat16*>(p); }
BFloat16* generic_pointer(kernels::native::Bf16* p) { return reinterpret_cast<BFloat16*>(p); }

TYPED_TEST(NativePool, ForwardAndBackwardAreTheGenericKernelsBitForBit) {
  using T = TypeParam;
  std::set<std::int64_t> backward;  // blocks
  for (const kernels::PoolGeometry& g : pool_geometries()) {
    ASSERT_TRUE(kernels::native::supports_max_pool_forward(g));
    SCOPED_TRACE(testing::Message() << "block " << g.block << ", channels " << g.channels << ", depth " << g.in_d
                                    << ", width " << g.in_w << ", kernel " << g.kernel_w << ", ceil " << g.ceil_mode);
    const std::int64_t planes = g.batch * g.blocks() * g.block, out = planes * g.out_spatial();
    const std::vector<T> x = values<T>(g);
    std::vector<T> dy = random_elements<T>(out, 2);
    for (std::size_t i = 0; i < dy.size(); i += 5) dy[i] = from_float<T>(-0.0F);
    std::vector<T> want = blank<T>(out), dx = blank<T>(planes * g.in_spatial());
    std::vector<std::uint8_t> index(static_cast<std::size_t>(out), 77);
    kernels::generic::max_pool_forward(g, generic_pointer(x.data()), generic_pointer(want.data()), index.data());
    kernels::generic::max_pool_backward(g, generic_pointer(dy.data()), index.data(), generic_pointer(dx.data()));
    for_levels([&](const kernels::NativeKernels& kernels) {
      std::vector<T> y = blank<T>(out), gradient = blank<T>(planes * g.in_spatial());
      std::vector<std::uint8_t> at(static_cast<std::size_t>(out), 99);
      kernels::native::max_pool_forward(g, x.data(), y.data(), at.data(), kernels);
      EXPECT_EQ(at, index);
      for (std::size_t i = 0; i < y.size(); ++i) {
        const float a = to_float(y[i]), b = to_float(want[i]);
        ASSERT_TRUE(a == b || (a != a && b != b)) << "element " << i << " is " << a << ", expected " << b;
      }
      if (!kernels::native::supports_max_pool_backward(g)) return;
      backward.insert(g.block);
      kernels::native::max_pool_backward(g, dy.data(), at.data(), gradient.data(), kernels);
      for (std::size_t i = 0; i < dx.size(); ++i)
        ASSERT_EQ(std::bit_cast<std::uint32_t>(to_float(gradient[i])), std::bit_cast<std::uint32_t>(to_float(dx[i])))
            << "element " << i << " is " << to_float(gradient[i]);
    });
  }
  EXPECT_EQ(backward, (std::set<std::int64_t>{1, 8, 16}));
}

TYPED_TEST(NativePool, ThreadsChangeNothing) {
  using T = TypeParam;
  kernels::PoolGeometry g{.batch = 8,
                          .channels = 24,
                          .in_h = 32,
                          .in_w = 32,
                          .kernel_h = 3,
                          .kernel_w = 3,
                          .stride_h = 2,
                          .stride_w = 2,
                          .padding_h = 1,
                          .padding_w = 1};
  for (const std::int64_t block : {1, 8}) {
    g.block = block;
    const std::vector<T> x = random_elements<T>(g.batch * g.channels * g.in_h * g.in_w, 1);
    const std::int64_t out = g.batch * g.channels * g.out_h() * g.out_w();
    std::vector<std::uint8_t> at(static_cast<std::size_t>(out));
    generic::expect_thread_invariant([&] {
      std::vector<T> y = blank<T>(out);
      kernels::native::max_pool_forward(g, x.data(), y.data(), at.data());
      return y;
    });
  }
}

}  // namespace
}  // namespace lockstep::native

#include "lockstep/kernels/vector/pool.h"

#include <algorithm>
#include <type_traits>

#include "lockstep/core/error.h"
#include "lockstep/kernels/generic/elementwise.h"

namespace lockstep::vector {

template <class T>
void max_pool_forward(const generic::PoolGeometry& g, const T* x, T* y, std::uint8_t* position) {
  check(g.block == kLanes, "max_pool", "channels lie in blocks of {}, expected {}", g.block, kLanes);
  check(g.kernel_h * g.kernel_w <= 255, "max_pool", "the window has {} elements, expected at most 255",
        g.kernel_h * g.kernel_w);
  const VectorKernels& kernels = vector_kernels();
  const auto max_row = [&] {
    if constexpr (std::is_same_v<T, float>) {
      return kernels.pool_f32.max_row;
    } else {
      return kernels.pool_bf16.max_row;
    }
  }();
  const std::int64_t oh = g.out_h(), ow = g.out_w(), out = oh * ow * kLanes;
  const std::int64_t work = g.in_h * g.in_w * kLanes + out * g.kernel_h * g.kernel_w;
  generic::parallel_for(g.batch * g.blocks(), work, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      for (std::int64_t r = 0; r < oh; ++r) {
        max_row({.in_h = g.in_h,
                 .in_w = g.in_w,
                 .out_w = ow,
                 .kernel_h = g.kernel_h,
                 .kernel_w = g.kernel_w,
                 .dilation_h = g.dilation_h,
                 .dilation_w = g.dilation_w,
                 .top = r * g.stride_h - g.padding_h,
                 .left = -g.padding_w,
                 .stride_w = g.stride_w,
                 .x = x + p * g.in_h * g.in_w * kLanes,
                 .y = y + p * out + r * ow * kLanes,
                 .position = position + p * out + r * ow * kLanes});
      }
      const std::int64_t valid = g.channels - p % g.blocks() * kLanes;
      for (std::int64_t at = p * out; valid < kLanes && at < (p + 1) * out; at += kLanes) {
        std::fill(y + at + valid, y + at + kLanes, T{});
        std::fill(position + at + valid, position + at + kLanes, std::uint8_t{});
      }
    }
  });
}

template void max_pool_forward(const generic::PoolGeometry&, const float*, float*, std::uint8_t*);
template void max_pool_forward(const generic::PoolGeometry&, const Bf16*, Bf16*, std::uint8_t*);

}  // namespace lockstep::vector

#include "lockstep/kernels/native/pool.h"

#include <algorithm>
#include <type_traits>

#include "lockstep/core/parallel_for.h"

namespace lockstep::kernels::native {
namespace {

template <class T>
const MaxPoolTable<T>& table(const NativeKernels& kernels) {
  if constexpr (std::is_same_v<T, float>) {
    return kernels.max_pool_f32;
  } else {
    return kernels.max_pool_bf16;
  }
}

// Calls body(shape of the plane, plane) for all planes.
template <class Body>
void for_planes(const PoolGeometry& g, const Body& body) {
  const MaxPoolShape shape{.block = g.block,
                           .channels = g.block,
                           .in_h = g.in_h,
                           .in_w = g.in_w,
                           .out_h = g.out_h(),
                           .out_w = g.out_w(),
                           .kernel_h = g.kernel_h,
                           .kernel_w = g.kernel_w,
                           .stride_h = g.stride_h,
                           .stride_w = g.stride_w,
                           .padding_h = g.padding_h,
                           .padding_w = g.padding_w,
                           .dilation_h = g.dilation_h,
                           .dilation_w = g.dilation_w};
  const std::int64_t work = (g.in_h * g.in_w + shape.out_h * shape.out_w * g.kernel_h * g.kernel_w) * g.block;
  parallel_for(g.batch * g.blocks(), work, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      MaxPoolShape plane = shape;
      plane.channels = std::min(g.block, g.channels - p % g.blocks() * g.block);
      body(plane, p);
    }
  });
}

}  // namespace

bool supports_max_pool_forward(const PoolGeometry& g) {
  if (!g.is_planar() || g.kernel_h * g.kernel_w > 255) return false;
  return g.block == 8 || g.block == 16 || (g.block == 1 && g.stride_w <= 2);
}

bool supports_max_pool_backward(const PoolGeometry& g) {
  const std::int64_t kernel = g.block == 1 ? 2 : 3, padding = g.block == 1 ? 0 : 1;
  if (!g.is_planar() || (g.block != 1 && g.block != 8 && g.block != 16)) return false;
  return g.kernel_h == kernel && g.kernel_w == kernel && g.stride_h == 2 && g.stride_w == 2 && g.padding_h <= padding &&
         g.padding_w <= padding && g.dilation_h == 1 && g.dilation_w == 1;
}

template <class T>
void max_pool_forward(const PoolGeometry& g, const T* x, T* y, std::uint8_t* index, const NativeKernels& kernels) {
  const std::int64_t in = g.in_h * g.in_w * g.block, out = g.out_h() * g.out_w() * g.block;
  for_planes(g, [&](const MaxPoolShape& shape, std::int64_t p) {
    table<T>(kernels).forward(shape, x + p * in, y + p * out, index + p * out);
  });
}

template <class T>
void max_pool_backward(const PoolGeometry& g, const T* dy, const std::uint8_t* index, T* dx,
                       const NativeKernels& kernels) {
  const std::int64_t in = g.in_h * g.in_w * g.block, out = g.out_h() * g.out_w() * g.block;
  for_planes(g, [&](const MaxPoolShape& shape, std::int64_t p) {
    table<T>(kernels).backward(shape, dy + p * out, index + p * out, dx + p * in);
  });
}

#define LOCKSTEP_INSTANTIATE(T)                                                                           \
  template void max_pool_forward(const PoolGeometry&, const T*, T*, std::uint8_t*, const NativeKernels&); \
  template void max_pool_backward(const PoolGeometry&, const T*, const std::uint8_t*, T*, const NativeKernels&);
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(Bf16)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::native

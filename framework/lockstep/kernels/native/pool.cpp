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

// Calls body(shape of the image, image) for all images of a block of channels.
template <class Body>
void for_images(const PoolGeometry& g, const Body& body) {
  const MaxPoolShape shape{.block = g.block,
                           .channels = g.block,
                           .in_d = g.in_d,
                           .in_h = g.in_h,
                           .in_w = g.in_w,
                           .out_d = g.out_d(),
                           .out_h = g.out_h(),
                           .out_w = g.out_w(),
                           .kernel_d = g.kernel_d,
                           .kernel_h = g.kernel_h,
                           .kernel_w = g.kernel_w,
                           .stride_d = g.stride_d,
                           .stride_h = g.stride_h,
                           .stride_w = g.stride_w,
                           .padding_d = g.padding_d,
                           .padding_h = g.padding_h,
                           .padding_w = g.padding_w,
                           .dilation_d = g.dilation_d,
                           .dilation_h = g.dilation_h,
                           .dilation_w = g.dilation_w};
  const std::int64_t work = (g.in_spatial() + g.out_spatial() * g.window()) * g.block;
  parallel_for(g.batch * g.blocks(), work, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      MaxPoolShape image = shape;
      image.channels = std::min(g.block, g.channels - p % g.blocks() * g.block);
      body(image, p);
    }
  });
}

// Whether each position of the image belongs to at most one window.
bool is_side_by_side(const PoolGeometry& g) {
  return g.kernel_d == g.stride_d && g.kernel_h == g.stride_h && g.kernel_w == g.stride_w && g.padding_d == 0 &&
         g.padding_h == 0 && g.padding_w == 0 && g.dilation_d == 1 && g.dilation_h == 1 && g.dilation_w == 1;
}

}  // namespace

bool supports_max_pool_forward(const PoolGeometry& g) {
  if (g.window() > 255) return false;
  return g.block == 8 || g.block == 16 || (g.block == 1 && g.is_planar() && g.stride_w <= 2);
}

bool supports_max_pool_backward(const PoolGeometry& g) {
  const std::int64_t kernel = g.block == 1 ? 2 : 3, padding = g.block == 1 ? 0 : 1;
  if (g.window() > 255 || (g.block != 1 && g.block != 8 && g.block != 16)) return false;
  if (g.block != 1 && is_side_by_side(g)) return true;
  if (!g.is_planar()) return false;
  return g.kernel_h == kernel && g.kernel_w == kernel && g.stride_h == 2 && g.stride_w == 2 && g.padding_h <= padding &&
         g.padding_w <= padding && g.dilation_h == 1 && g.dilation_w == 1;
}

template <class T>
void max_pool_forward(const PoolGeometry& g, const T* x, T* y, std::uint8_t* index, const NativeKernels& kernels) {
  const std::int64_t in = g.in_spatial() * g.block, out = g.out_spatial() * g.block;
  for_images(g, [&](const MaxPoolShape& shape, std::int64_t p) {
    table<T>(kernels).forward(shape, x + p * in, y + p * out, index + p * out);
  });
}

template <class T>
void max_pool_backward(const PoolGeometry& g, const T* dy, const std::uint8_t* index, T* dx,
                       const NativeKernels& kernels) {
  const std::int64_t in = g.in_spatial() * g.block, out = g.out_spatial() * g.block;
  for_images(g, [&](const MaxPoolShape& shape, std::int64_t p) {
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

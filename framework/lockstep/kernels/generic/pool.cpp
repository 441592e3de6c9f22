#include "lockstep/kernels/generic/pool.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "lockstep/core/bfloat16.h"
#include "lockstep/core/error.h"
#include "lockstep/kernels/generic/pool_images.h"

namespace lockstep::kernels::generic {

namespace {

// The type in which maxima are compared: bf16 as f32.
template <class T>
using Compared = std::conditional_t<std::is_same_v<T, BFloat16>, float, T>;

struct Taps {
  std::int64_t begin, end;  // of the kernel's positions those inside the image
};

// The range of the window whose first position is `start`.
Taps taps_inside(std::int64_t start, std::int64_t in, std::int64_t k, std::int64_t dil) {
  const std::int64_t before = start < 0 ? (-start + dil - 1) / dil : 0;
  const std::int64_t until = start < in ? (in - start + dil - 1) / dil : 0;
  return {std::min(before, k), std::min(until, k)};
}

// The input position at which a window begins: negative in the padding.
struct Corner {
  std::int64_t d, h, w;
};

// One output position of `Block` channels side by side: lanes that the compiler makes vectors of.
template <std::int64_t Block, class T, class Index>
void max_window(const PoolGeometry& g, const Corner& corner, const T* x, T* y, Index* index) {
  using C = Compared<T>;
  const Taps planes = taps_inside(corner.d, g.in_d, g.kernel_d, g.dilation_d);
  const Taps rows = taps_inside(corner.h, g.in_h, g.kernel_h, g.dilation_h);
  const Taps cols = taps_inside(corner.w, g.in_w, g.kernel_w, g.dilation_w);
  const bool empty = planes.begin >= planes.end || rows.begin >= rows.end || cols.begin >= cols.end;
  const std::int64_t first = (planes.begin * g.kernel_h + rows.begin) * g.kernel_w + cols.begin;
  C best[Block];
  std::int32_t at[Block];
  std::fill_n(best, Block, -std::numeric_limits<C>::infinity());
  std::fill_n(at, Block, static_cast<std::int32_t>(empty ? 0 : first));
  for (std::int64_t p = planes.begin; p < planes.end; ++p) {
    for (std::int64_t r = rows.begin; r < rows.end; ++r) {
      const std::int64_t row = (corner.d + p * g.dilation_d) * g.in_h + corner.h + r * g.dilation_h;
      for (std::int64_t c = cols.begin; c < cols.end; ++c) {
        const T* from = x + (row * g.in_w + corner.w + c * g.dilation_w) * Block;
        const auto position = static_cast<std::int32_t>((p * g.kernel_h + r) * g.kernel_w + c);
#pragma omp simd
        for (std::int64_t l = 0; l < Block; ++l) {
          const C v = static_cast<C>(from[l]);
          const bool take = (v > best[l]) | (v != v);
          best[l] = take ? v : best[l];
          at[l] = take ? position : at[l];
        }
      }
    }
  }
  for (std::int64_t l = 0; l < Block; ++l) y[l] = static_cast<T>(best[l]);
  for (std::int64_t l = 0; l < Block; ++l) index[l] = static_cast<Index>(at[l]);
}

// The images of `Block` channels each of one sample after the other.
template <std::int64_t Block, class T, class Index>
void max_images(const PoolGeometry& g, const T* x, T* y, Index* index) {
  const std::int64_t in = g.in_spatial() * Block, out = g.out_spatial(), oh = g.out_h(), ow = g.out_w();
  for_images(g, [&](std::int64_t p) {
    const std::int64_t first = p % g.blocks() * Block, valid = std::min(Block, g.channels - first);
    for (std::int64_t o = 0; o < out; ++o) {
      const std::int64_t at = (p * out + o) * Block;
      const Corner corner{o / ow / oh * g.stride_d - g.padding_d, o / ow % oh * g.stride_h - g.padding_h,
                          o % ow * g.stride_w - g.padding_w};
      max_window<Block>(g, corner, x + p * in, y + at, index + at);
      std::fill(y + at + valid, y + at + Block, T(0));
      std::fill(index + at + valid, index + at + Block, Index(0));
    }
  });
}

// The range [first, last] of windows along one dimension that cover position i of the image, without dilation.
struct Reach {
  std::int64_t first, last;
};

Reach windows_at(std::int64_t i, std::int64_t out, std::int64_t k, std::int64_t stride, std::int64_t pad,
                 std::int64_t dil) {
  const std::int64_t from = i + pad - (k - 1) * dil;
  return {from <= 0 ? 0 : (from + stride - 1) / stride, std::min((i + pad) / stride, out - 1)};
}

// Along one axis: whether a tap of the window that begins `distance` before a position of the image falls on it, and
// which one. With dilation a position may lie between two taps.
bool find_tap(std::int64_t distance, std::int64_t dil, std::int64_t* tap) {
  *tap = dil > 1 ? distance / dil : distance;
  return dil == 1 || distance % dil == 0;
}

// One input position of `Block` channels: the gradients of the windows that it won, added before they are stored.
template <std::int64_t Block, class T, class Index>
void max_gradient(const PoolGeometry& g, const Corner& at, const T* dy, const Index* index, T* dx) {
  using C = Compared<T>;
  const std::int64_t oh = g.out_h(), ow = g.out_w();
  const Reach planes = windows_at(at.d, g.out_d(), g.kernel_d, g.stride_d, g.padding_d, g.dilation_d);
  const Reach rows = windows_at(at.h, oh, g.kernel_h, g.stride_h, g.padding_h, g.dilation_h);
  const Reach cols = windows_at(at.w, ow, g.kernel_w, g.stride_w, g.padding_w, g.dilation_w);
  C total[Block] = {};
  std::int64_t tap_d = 0, tap_h = 0, tap_w = 0;
  for (std::int64_t p = planes.first; p <= planes.last; ++p) {
    if (!find_tap(at.d + g.padding_d - p * g.stride_d, g.dilation_d, &tap_d)) continue;
    for (std::int64_t r = rows.first; r <= rows.last; ++r) {
      if (!find_tap(at.h + g.padding_h - r * g.stride_h, g.dilation_h, &tap_h)) continue;
      const std::int64_t row = (tap_d * g.kernel_h + tap_h) * g.kernel_w;
      for (std::int64_t c = cols.first; c <= cols.last; ++c) {
        if (!find_tap(at.w + g.padding_w - c * g.stride_w, g.dilation_w, &tap_w)) continue;
        const auto position = static_cast<std::int32_t>(row + tap_w);
        const T* from = dy + ((p * oh + r) * ow + c) * Block;
        const Index* won = index + ((p * oh + r) * ow + c) * Block;
#pragma omp simd
        for (std::int64_t l = 0; l < Block; ++l) {
          const C value = static_cast<C>(from[l]);
          total[l] += static_cast<std::int32_t>(won[l]) == position ? value : C(0);
        }
      }
    }
  }
  for (std::int64_t l = 0; l < Block; ++l) dx[l] = static_cast<T>(total[l]);
}

template <std::int64_t Block, class T, class Index>
void max_images_backward(const PoolGeometry& g, const T* dy, const Index* index, T* dx) {
  const std::int64_t in = g.in_spatial(), out = g.out_spatial() * Block;
  for_images(g, [&](std::int64_t p) {
    for (std::int64_t i = 0; i < in; ++i) {
      const Corner at{i / g.in_w / g.in_h, i / g.in_w % g.in_h, i % g.in_w};
      max_gradient<Block>(g, at, dy + p * out, index + p * out, dx + (p * in + i) * Block);
    }
  });
}

[[noreturn]] void fail_for_block(std::int64_t block) {
  fail("max_pool", "channels lie in blocks of {}, expected 1, 8 or 16", block);
}

}  // namespace

template <class T, class Index>
void max_pool_forward(const PoolGeometry& g, const T* x, T* y, Index* index) {
  const std::int64_t window = g.window();
  check(window <= std::numeric_limits<Index>::max(), "max_pool", "the window has {} elements, expected at most {}",
        window, std::numeric_limits<Index>::max());
  switch (g.block) {
    case 1:
      return max_images<1>(g, x, y, index);
    case 8:
      return max_images<8>(g, x, y, index);
    case 16:
      return max_images<16>(g, x, y, index);
    default:
      fail_for_block(g.block);
  }
}

template <class T, class Index>
void max_pool_backward(const PoolGeometry& g, const T* dy, const Index* index, T* dx) {
  switch (g.block) {
    case 1:
      return max_images_backward<1>(g, dy, index, dx);
    case 8:
      return max_images_backward<8>(g, dy, index, dx);
    case 16:
      return max_images_backward<16>(g, dy, index, dx);
    default:
      fail_for_block(g.block);
  }
}

template void max_pool_forward(const PoolGeometry&, const BFloat16*, BFloat16*, std::uint8_t*);
template void max_pool_forward(const PoolGeometry&, const BFloat16*, BFloat16*, std::int32_t*);
template void max_pool_backward(const PoolGeometry&, const BFloat16*, const std::uint8_t*, BFloat16*);
template void max_pool_backward(const PoolGeometry&, const BFloat16*, const std::int32_t*, BFloat16*);
#define LOCKSTEP_INSTANTIATE(T)                                                            \
  template void max_pool_forward(const PoolGeometry&, const T*, T*, std::uint8_t*);        \
  template void max_pool_forward(const PoolGeometry&, const T*, T*, std::int32_t*);        \
  template void max_pool_backward(const PoolGeometry&, const T*, const std::uint8_t*, T*); \
  template void max_pool_backward(const PoolGeometry&, const T*, const std::int32_t*, T*);
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(double)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::generic

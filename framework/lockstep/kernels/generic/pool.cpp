#include "lockstep/kernels/generic/pool.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "lockstep/core/bfloat16.h"
#include "lockstep/core/error.h"
#include "lockstep/kernels/generic/reduce.h"

namespace lockstep::kernels::generic {

namespace {

// body(plane) for every plane of the batch, `block` channels each.
template <class Body>
void for_planes(const PoolGeometry& g, const Body& body) {
  const std::int64_t work = (g.in_h * g.in_w + g.out_h() * g.out_w() * g.kernel_h * g.kernel_w) * g.block;
  parallel_for(g.batch * g.blocks(), work, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) body(p);
  });
}

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

// One output position of `Block` channels side by side: lanes that the compiler makes vectors of.
template <std::int64_t Block, class T, class Index>
void max_window(const PoolGeometry& g, std::int64_t top, std::int64_t left, const T* x, T* y, Index* index) {
  using C = Compared<T>;
  const Taps rows = taps_inside(top, g.in_h, g.kernel_h, g.dilation_h);
  const Taps cols = taps_inside(left, g.in_w, g.kernel_w, g.dilation_w);
  const bool empty = rows.begin >= rows.end || cols.begin >= cols.end;
  C best[Block];
  std::int32_t at[Block];
  std::fill_n(best, Block, -std::numeric_limits<C>::infinity());
  std::fill_n(at, Block, static_cast<std::int32_t>(empty ? 0 : rows.begin * g.kernel_w + cols.begin));
  for (std::int64_t r = rows.begin; r < rows.end; ++r) {
    for (std::int64_t c = cols.begin; c < cols.end; ++c) {
      const T* from = x + ((top + r * g.dilation_h) * g.in_w + left + c * g.dilation_w) * Block;
      const auto position = static_cast<std::int32_t>(r * g.kernel_w + c);
#pragma omp simd
      for (std::int64_t l = 0; l < Block; ++l) {
        const C v = static_cast<C>(from[l]);
        const bool take = (v > best[l]) | (v != v);
        best[l] = take ? v : best[l];
        at[l] = take ? position : at[l];
      }
    }
  }
  for (std::int64_t l = 0; l < Block; ++l) y[l] = static_cast<T>(best[l]);
  for (std::int64_t l = 0; l < Block; ++l) index[l] = static_cast<Index>(at[l]);
}

// The planes of `Block` channels each of one sample after the other.
template <std::int64_t Block, class T, class Index>
void max_planes(const PoolGeometry& g, const T* x, T* y, Index* index) {
  const std::int64_t in = g.in_h * g.in_w * Block, oh = g.out_h(), ow = g.out_w();
  for_planes(g, [&](std::int64_t p) {
    const std::int64_t first = p % g.blocks() * Block, valid = std::min(Block, g.channels - first);
    for (std::int64_t o = 0; o < oh * ow; ++o) {
      const std::int64_t at = (p * oh * ow + o) * Block;
      max_window<Block>(g, o / ow * g.stride_h - g.padding_h, o % ow * g.stride_w - g.padding_w, x + p * in, y + at,
                        index + at);
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

// One input position of `Block` channels: the gradients of the windows that it won, added before they are stored.
template <std::int64_t Block, class T, class Index>
void max_gradient(const PoolGeometry& g, std::int64_t h, std::int64_t w, const T* dy, const Index* index, T* dx) {
  using C = Compared<T>;
  const std::int64_t ow = g.out_w();
  const Reach rows = windows_at(h, g.out_h(), g.kernel_h, g.stride_h, g.padding_h, g.dilation_h);
  const Reach cols = windows_at(w, ow, g.kernel_w, g.stride_w, g.padding_w, g.dilation_w);
  C total[Block] = {};
  for (std::int64_t r = rows.first; r <= rows.last; ++r) {
    const std::int64_t down = h + g.padding_h - r * g.stride_h;
    if (g.dilation_h > 1 && down % g.dilation_h != 0) continue;
    const std::int64_t row = (g.dilation_h > 1 ? down / g.dilation_h : down) * g.kernel_w;
    for (std::int64_t c = cols.first; c <= cols.last; ++c) {
      const std::int64_t across = w + g.padding_w - c * g.stride_w;
      if (g.dilation_w > 1 && across % g.dilation_w != 0) continue;
      const auto position = static_cast<std::int32_t>(row + (g.dilation_w > 1 ? across / g.dilation_w : across));
      const T* from = dy + (r * ow + c) * Block;
      const Index* at = index + (r * ow + c) * Block;
#pragma omp simd
      for (std::int64_t l = 0; l < Block; ++l) {
        const C value = static_cast<C>(from[l]);
        total[l] += static_cast<std::int32_t>(at[l]) == position ? value : C(0);
      }
    }
  }
  for (std::int64_t l = 0; l < Block; ++l) dx[l] = static_cast<T>(total[l]);
}

template <std::int64_t Block, class T, class Index>
void max_planes_backward(const PoolGeometry& g, const T* dy, const Index* index, T* dx) {
  const std::int64_t out = g.out_h() * g.out_w() * Block;
  for_planes(g, [&](std::int64_t p) {
    T* to = dx + p * g.in_h * g.in_w * Block;
    for (std::int64_t h = 0; h < g.in_h; ++h) {
      for (std::int64_t w = 0; w < g.in_w; ++w, to += Block)
        max_gradient<Block>(g, h, w, dy + p * out, index + p * out, to);
    }
  });
}

[[noreturn]] void fail_for_block(std::int64_t block) {
  fail("max_pool", "channels lie in blocks of {}, expected 1, 8 or 16", block);
}

struct AverageWindow {
  std::int64_t begin, end, full;  // `full` counts the padding, but not what ceil_mode hangs over it
};

AverageWindow average_window(std::int64_t o, std::int64_t in, std::int64_t k, std::int64_t stride, std::int64_t pad) {
  const std::int64_t begin = o * stride - pad, end = std::min(begin + k, in + pad);
  return {std::max<std::int64_t>(begin, 0), std::min(end, in), end - begin};
}

// Calls window(output position, rows, cols, 1 / divisor) for every window of a plane that holds an element.
template <class T, class Body>
void for_average_windows(const PoolGeometry& g, const Body& window) {
  const std::int64_t oh = g.out_h(), ow = g.out_w();
  for (std::int64_t r = 0; r < oh; ++r) {
    const AverageWindow rows = average_window(r, g.in_h, g.kernel_h, g.stride_h, g.padding_h);
    for (std::int64_t c = 0; c < ow; ++c) {
      const AverageWindow cols = average_window(c, g.in_w, g.kernel_w, g.stride_w, g.padding_w);
      if (rows.begin >= rows.end || cols.begin >= cols.end) continue;
      const std::int64_t inside = (rows.end - rows.begin) * (cols.end - cols.begin);
      window(r * ow + c, rows, cols, static_cast<T>(g.count_include_pad ? rows.full * cols.full : inside));
    }
  }
}

}  // namespace

template <class T, class Index>
void max_pool_forward(const PoolGeometry& g, const T* x, T* y, Index* index) {
  const std::int64_t window = g.kernel_h * g.kernel_w;
  check(window <= std::numeric_limits<Index>::max(), "max_pool", "the window has {} elements, expected at most {}",
        window, std::numeric_limits<Index>::max());
  switch (g.block) {
    case 1:
      return max_planes<1>(g, x, y, index);
    case 8:
      return max_planes<8>(g, x, y, index);
    case 16:
      return max_planes<16>(g, x, y, index);
    default:
      fail_for_block(g.block);
  }
}

template <class T, class Index>
void max_pool_backward(const PoolGeometry& g, const T* dy, const Index* index, T* dx) {
  switch (g.block) {
    case 1:
      return max_planes_backward<1>(g, dy, index, dx);
    case 8:
      return max_planes_backward<8>(g, dy, index, dx);
    case 16:
      return max_planes_backward<16>(g, dy, index, dx);
    default:
      fail_for_block(g.block);
  }
}

template <class T>
void average_pool_forward(const PoolGeometry& g, const T* x, T* y) {
  const std::int64_t in = g.in_h * g.in_w, out = g.out_h() * g.out_w();
  for_planes(g, [&](std::int64_t p) {
    const T* plane = x + p * in;
    std::fill(y + p * out, y + (p + 1) * out, T(0));
    for_average_windows<T>(g, [&](std::int64_t o, AverageWindow rows, AverageWindow cols, T divisor) {
      T total = 0;
      for (std::int64_t h = rows.begin; h < rows.end; ++h) {
        for (std::int64_t w = cols.begin; w < cols.end; ++w) total += plane[h * g.in_w + w];
      }
      y[p * out + o] = total / divisor;
    });
  });
}

template <class T>
void average_pool_backward(const PoolGeometry& g, const T* dy, T* dx) {
  const std::int64_t in = g.in_h * g.in_w, out = g.out_h() * g.out_w();
  for_planes(g, [&](std::int64_t p) {
    T* plane = dx + p * in;
    std::fill(plane, plane + in, T(0));
    for_average_windows<T>(g, [&](std::int64_t o, AverageWindow rows, AverageWindow cols, T divisor) {
      const T share = dy[p * out + o] / divisor;
      for (std::int64_t h = rows.begin; h < rows.end; ++h) {
        for (std::int64_t w = cols.begin; w < cols.end; ++w) plane[h * g.in_w + w] += share;
      }
    });
  });
}

template <class T>
void global_average_pool_forward(std::int64_t planes, std::int64_t spatial, const T* x, T* y) {
  parallel_for(planes, spatial, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      const T* plane = x + p * spatial;
      const double total =
          detail::chunk_sum(0, spatial, [plane](std::int64_t i) { return static_cast<double>(plane[i]); });
      y[p] = static_cast<T>(spatial > 0 ? total / static_cast<double>(spatial) : 0.0);
    }
  });
}

template <class T>
void global_average_pool_backward(std::int64_t planes, std::int64_t spatial, const T* dy, T* dx) {
  parallel_for(planes, spatial, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      std::fill(dx + p * spatial, dx + (p + 1) * spatial, dy[p] / static_cast<T>(spatial));
    }
  });
}

template void max_pool_forward(const PoolGeometry&, const BFloat16*, BFloat16*, std::uint8_t*);
template void max_pool_forward(const PoolGeometry&, const BFloat16*, BFloat16*, std::int32_t*);
template void max_pool_backward(const PoolGeometry&, const BFloat16*, const std::uint8_t*, BFloat16*);
template void max_pool_backward(const PoolGeometry&, const BFloat16*, const std::int32_t*, BFloat16*);
#define LOCKSTEP_INSTANTIATE(T)                                                            \
  template void max_pool_forward(const PoolGeometry&, const T*, T*, std::uint8_t*);        \
  template void max_pool_forward(const PoolGeometry&, const T*, T*, std::int32_t*);        \
  template void max_pool_backward(const PoolGeometry&, const T*, const std::uint8_t*, T*); \
  template void max_pool_backward(const PoolGeometry&, const T*, const std::int32_t*, T*); \
  template void average_pool_forward<T>(const PoolGeometry&, const T*, T*);                \
  template void average_pool_backward<T>(const PoolGeometry&, const T*, T*);               \
  template void global_average_pool_forward<T>(std::int64_t, std::int64_t, const T*, T*);  \
  template void global_average_pool_backward<T>(std::int64_t, std::int64_t, const T*, T*);
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(double)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::generic

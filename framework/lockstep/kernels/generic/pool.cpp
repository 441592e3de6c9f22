#include "lockstep/kernels/generic/pool.h"

#include <algorithm>
#include <limits>

#include "lockstep/core/error.h"
#include "lockstep/kernels/generic/reduce.h"

namespace lockstep::generic {

namespace {

struct Window {
  std::int64_t begin, end;  // input positions inside the image, `dilation` apart
};

// Those of output position o, the first one moved into the image in whole steps of the dilation.
Window max_window(std::int64_t o, std::int64_t in, std::int64_t k, std::int64_t stride, std::int64_t pad,
                  std::int64_t dil) {
  std::int64_t begin = o * stride - pad;
  const std::int64_t end = std::min(begin + (k - 1) * dil + 1, in);
  if (begin < 0) begin += (-begin + dil - 1) / dil * dil;
  return {begin, end};
}

template <class T>
void max_plane(const PoolGeometry& g, const T* x, T* y, std::int32_t* index) {
  const std::int64_t oh = g.out_h(), ow = g.out_w();
  for (std::int64_t r = 0; r < oh; ++r) {
    const Window rows = max_window(r, g.in_h, g.kernel_h, g.stride_h, g.padding_h, g.dilation_h);
    for (std::int64_t c = 0; c < ow; ++c) {
      const Window cols = max_window(c, g.in_w, g.kernel_w, g.stride_w, g.padding_w, g.dilation_w);
      T best = -std::numeric_limits<T>::infinity();
      std::int64_t at = rows.begin < rows.end && cols.begin < cols.end ? rows.begin * g.in_w + cols.begin : -1;
      for (std::int64_t h = rows.begin; h < rows.end; h += g.dilation_h) {
        for (std::int64_t w = cols.begin; w < cols.end; w += g.dilation_w) {
          const T v = x[h * g.in_w + w];
          if (v > best || v != v) {
            best = v;
            at = h * g.in_w + w;
          }
        }
      }
      *y++ = best;
      *index++ = static_cast<std::int32_t>(at);
    }
  }
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

// body(plane) for every plane of the batch.
template <class Body>
void for_planes(const PoolGeometry& g, const Body& body) {
  const std::int64_t work = g.in_h * g.in_w + g.out_h() * g.out_w() * g.kernel_h * g.kernel_w;
  parallel_for(g.batch * g.channels, work, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) body(p);
  });
}

}  // namespace

template <class T>
void max_pool_forward(const PoolGeometry& g, const T* x, T* y, std::int32_t* index) {
  const std::int64_t in = g.in_h * g.in_w, out = g.out_h() * g.out_w();
  check(in <= std::numeric_limits<std::int32_t>::max(), "max_pool", "an image has {} elements, expected at most {}", in,
        std::numeric_limits<std::int32_t>::max());
  for_planes(g, [&](std::int64_t p) { max_plane(g, x + p * in, y + p * out, index + p * out); });
}

template <class T>
void max_pool_backward(const PoolGeometry& g, const T* dy, const std::int32_t* index, T* dx) {
  const std::int64_t in = g.in_h * g.in_w, out = g.out_h() * g.out_w();
  for_planes(g, [&](std::int64_t p) {
    T* plane = dx + p * in;
    std::fill(plane, plane + in, T(0));
    for (std::int64_t o = p * out; o < (p + 1) * out; ++o) {
      if (index[o] >= 0) plane[index[o]] += dy[o];
    }
  });
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

#define LOCKSTEP_INSTANTIATE(T)                                                               \
  template void max_pool_forward<T>(const PoolGeometry&, const T*, T*, std::int32_t*);        \
  template void max_pool_backward<T>(const PoolGeometry&, const T*, const std::int32_t*, T*); \
  template void average_pool_forward<T>(const PoolGeometry&, const T*, T*);                   \
  template void average_pool_backward<T>(const PoolGeometry&, const T*, T*);                  \
  template void global_average_pool_forward<T>(std::int64_t, std::int64_t, const T*, T*);     \
  template void global_average_pool_backward<T>(std::int64_t, std::int64_t, const T*, T*);
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(double)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::generic

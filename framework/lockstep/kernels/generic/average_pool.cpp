#include <algorithm>

#include "lockstep/core/parallel_for.h"
#include "lockstep/kernels/generic/pool.h"
#include "lockstep/kernels/generic/pool_images.h"
#include "lockstep/kernels/generic/reduce.h"

namespace lockstep::kernels::generic {

namespace {

struct AverageWindow {
  std::int64_t begin, end, full;  // `full` counts the padding, but not what ceil_mode hangs over it
};

AverageWindow average_window(std::int64_t o, std::int64_t in, std::int64_t k, std::int64_t stride, std::int64_t pad) {
  const std::int64_t begin = o * stride - pad, end = std::min(begin + k, in + pad);
  return {std::max<std::int64_t>(begin, 0), std::min(end, in), end - begin};
}

bool is_empty(const AverageWindow& w) { return w.begin >= w.end; }
std::int64_t inside(const AverageWindow& w) { return w.end - w.begin; }

struct AverageBox {
  AverageWindow planes, rows, cols;
};

// Calls window(output position, box, divisor) for every window of an image that holds an element.
template <class T, class Body>
void for_average_windows(const PoolGeometry& g, const Body& window) {
  const std::int64_t out = g.out_spatial(), oh = g.out_h(), ow = g.out_w();
  for (std::int64_t o = 0; o < out; ++o) {
    const AverageBox box{average_window(o / ow / oh, g.in_d, g.kernel_d, g.stride_d, g.padding_d),
                         average_window(o / ow % oh, g.in_h, g.kernel_h, g.stride_h, g.padding_h),
                         average_window(o % ow, g.in_w, g.kernel_w, g.stride_w, g.padding_w)};
    const auto& [planes, rows, cols] = box;
    if (is_empty(planes) || is_empty(rows) || is_empty(cols)) continue;
    const std::int64_t count = inside(planes) * inside(rows) * inside(cols);
    window(o, box, static_cast<T>(g.count_include_pad ? planes.full * rows.full * cols.full : count));
  }
}

// Calls row(begin, end) for the elements of the image under a window, row by row.
template <class Body>
void for_rows(const PoolGeometry& g, const AverageBox& box, const Body& row) {
  for (std::int64_t d = box.planes.begin; d < box.planes.end; ++d) {
    for (std::int64_t h = box.rows.begin; h < box.rows.end; ++h) {
      const std::int64_t first = (d * g.in_h + h) * g.in_w;
      row(first + box.cols.begin, first + box.cols.end);
    }
  }
}

}  // namespace

template <class T>
void average_pool_forward(const PoolGeometry& g, const T* x, T* y) {
  const std::int64_t in = g.in_spatial(), out = g.out_spatial();
  for_images(g, [&](std::int64_t p) {
    const T* image = x + p * in;
    std::fill(y + p * out, y + (p + 1) * out, T(0));
    for_average_windows<T>(g, [&](std::int64_t o, const AverageBox& box, T divisor) {
      T total = 0;
      for_rows(g, box, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) total += image[i];
      });
      y[p * out + o] = total / divisor;
    });
  });
}

template <class T>
void average_pool_backward(const PoolGeometry& g, const T* dy, T* dx) {
  const std::int64_t in = g.in_spatial(), out = g.out_spatial();
  for_images(g, [&](std::int64_t p) {
    T* image = dx + p * in;
    std::fill(image, image + in, T(0));
    for_average_windows<T>(g, [&](std::int64_t o, const AverageBox& box, T divisor) {
      const T share = dy[p * out + o] / divisor;
      for_rows(g, box, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) image[i] += share;
      });
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

#define LOCKSTEP_INSTANTIATE(T)                                                           \
  template void average_pool_forward<T>(const PoolGeometry&, const T*, T*);               \
  template void average_pool_backward<T>(const PoolGeometry&, const T*, T*);              \
  template void global_average_pool_forward<T>(std::int64_t, std::int64_t, const T*, T*); \
  template void global_average_pool_backward<T>(std::int64_t, std::int64_t, const T*, T*);
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(double)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::generic

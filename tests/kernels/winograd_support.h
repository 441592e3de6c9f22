// Convolutions for tests of Winograd's kernels: their shapes, their products in order, and memory in the kernels'
// layouts.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "lockstep/kernels/native/winograd.h"
#include "tests/kernels/native_support.h"

namespace lockstep::native {

using kernels::ConvolutionGeometry;
using kernels::native::kLanes;
using kernels::native::WinogradConvolution;

inline ConvolutionGeometry geometry(std::int64_t n, std::int64_t c, std::int64_t f, std::int64_t h, std::int64_t w,
                                    std::int64_t ph, std::int64_t pw) {
  return {.batch = n,
          .in_channels = c,
          .in_h = h,
          .in_w = w,
          .out_channels = f,
          .kernel_h = 3,
          .kernel_w = 3,
          .padding_h = ph,
          .padding_w = pw};
}

// The same over three axes; a kernel of depth kd with padding pd.
inline ConvolutionGeometry with_depth(ConvolutionGeometry g, std::int64_t d, std::int64_t kd, std::int64_t pd) {
  g.in_d = d;
  g.kernel_d = kd;
  g.padding_d = pd;
  return g;
}

// Images smaller than a tile, on its end and behind it, every padding, channels within a block, at its end and behind
// it, several chunks of channels, weights that are transformed chunk by chunk; volumes of every depth and padding of
// the kernel, groups of tiles that end within a slice.
inline std::vector<ConvolutionGeometry> geometries() {
  return {geometry(1, 1, 1, 1, 1, 1, 1),
          geometry(2, 3, 5, 4, 4, 1, 1),
          geometry(1, 16, 17, 5, 9, 1, 0),
          geometry(3, 17, 16, 8, 7, 0, 2),
          geometry(2, 40, 24, 13, 6, 2, 1),
          geometry(1, 80, 48, 3, 12, 1, 1),
          geometry(5, 16, 16, 12, 11, 1, 1),
          geometry(1, 160, 136, 6, 5, 1, 1),
          geometry(2, 1, 40, 3, 3, 0, 0),
          geometry(1, 16, 16, 46, 91, 1, 1),
          geometry(0, 16, 16, 4, 4, 1, 1),
          with_depth(geometry(2, 16, 17, 9, 5, 1, 1), 5, 3, 1),
          with_depth(geometry(1, 40, 16, 7, 6, 0, 2), 4, 3, 0),
          with_depth(geometry(3, 5, 24, 4, 8, 1, 1), 1, 3, 2),
          with_depth(geometry(2, 24, 32, 5, 5, 1, 0), 3, 2, 1),
          with_depth(geometry(2, 16, 8, 6, 6, 1, 1), 3, 1, 0),
          with_depth(geometry(1, 80, 72, 6, 7, 1, 1), 3, 3, 1),
          with_depth(geometry(1, 160, 136, 5, 5, 1, 1), 2, 3, 1),
          with_depth(geometry(2, 16, 16, 20, 28, 1, 1), 7, 3, 1),
          with_depth(geometry(0, 16, 16, 4, 4, 1, 1), 3, 3, 1)};
}

struct WinogradSizes {
  explicit WinogradSizes(const ConvolutionGeometry& g)
      : x(g.batch * g.in_channels * g.in_d * g.in_h * g.in_w),
        y(g.batch * g.out_channels * g.out_d() * g.out_h() * g.out_w()),
        w(g.out_channels * g.in_channels * g.kernel_d * 9) {}
  std::int64_t x, y, w;
};

// Calls row(x, y, w, n), offsets of a product of n positions in a row, for all products of the convolution.
template <class Row>
void for_rows(const ConvolutionGeometry& g, const Row& row) {
  const std::int64_t od = g.out_d(), oh = g.out_h(), ow = g.out_w(), taps = g.kernel_d * 9;
  for (std::int64_t i = 0; i < g.batch * g.out_channels * g.in_channels * taps; ++i) {
    const std::int64_t tap = i % taps, c = i / taps % g.in_channels, o = i / taps / g.in_channels % g.out_channels,
                       n = i / taps / g.in_channels / g.out_channels;
    const std::int64_t begin = std::max<std::int64_t>(0, g.padding_w - tap % 3);
    const std::int64_t end = std::min(ow, g.in_w + g.padding_w - tap % 3);
    for (std::int64_t q = 0; q < od * oh; ++q) {
      const std::int64_t d = q / oh + tap / 9 - g.padding_d, h = q % oh + tap / 3 % 3 - g.padding_h;
      if (d < 0 || d >= g.in_d || h < 0 || h >= g.in_h || begin >= end) continue;
      row((((n * g.in_channels + c) * g.in_d + d) * g.in_h + h) * g.in_w + begin + tap % 3 - g.padding_w,
          ((n * g.out_channels + o) * od * oh + q) * ow + begin, (o * g.in_channels + c) * taps + tap, end - begin);
    }
  }
}

inline std::vector<float> in_layout(const Shape& shape, const Layout& layout, const std::vector<float>& plain) {
  std::vector<float> values(static_cast<std::size_t>(layout.storage_elements(shape)), 0.0F);
  reorder(shape, DType::F32, {}, plain.data(), layout, values.data());
  return values;
}
inline std::vector<float> in_plain(const Shape& shape, const Layout& layout, const std::vector<float>& values) {
  std::vector<float> plain(static_cast<std::size_t>(shape.elements()));
  reorder(shape, DType::F32, layout, values.data(), {}, plain.data());
  return plain;
}

struct Forms {
  explicit Forms(const ConvolutionGeometry& g)
      : x_shape(shape(g, g.batch, g.in_channels, {g.in_d, g.in_h, g.in_w})),
        y_shape(shape(g, g.batch, g.out_channels, {g.out_d(), g.out_h(), g.out_w()})),
        w_shape(shape(g, g.out_channels, g.in_channels, {g.kernel_d, 3, 3})),
        x(Layout::channels_blocked(x_shape, kLanes)),
        y(Layout::channels_blocked(y_shape, kLanes)),
        w(kernels::native::winograd_weight_layout(w_shape)) {}
  static Shape shape(const ConvolutionGeometry& g, std::int64_t first, std::int64_t second,
                     const std::array<std::int64_t, 3>& axes) {
    if (g.is_planar()) return {first, second, axes[1], axes[2]};
    return {first, second, axes[0], axes[1], axes[2]};
  }
  Shape x_shape, y_shape, w_shape;
  Layout x, y, w;
};

// Memory whose every float is NaN before, and which must not be written behind its end.
class Workspace {
 public:
  explicit Workspace(std::size_t bytes) : values_(blank<float>(static_cast<std::int64_t>(bytes / sizeof(float)) + 17)) {
    values_[bytes / sizeof(float)] = 7;
    end_ = bytes / sizeof(float);
  }
  ~Workspace() { EXPECT_EQ(values_[end_], 7) << "written behind the workspace"; }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  float* data() { return values_.data(); }

 private:
  std::vector<float> values_;
  std::size_t end_;
};

}  // namespace lockstep::native

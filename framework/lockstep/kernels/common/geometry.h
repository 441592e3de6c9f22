// Sizes for kernels of several sets: channels of images, convolutions, pooling windows.
#pragma once

#include <cstdint>

#include "lockstep/graph/layout.h"
#include "lockstep/ops/convolution.h"
#include "lockstep/ops/pool.h"

namespace lockstep::kernels {

// [batch][channels / block][spatial][block]: block 1 is plain NCHW, 8 and 16 are blocked layouts with padded channels.
struct BatchNormView {
  std::int64_t batch = 0, channels = 0, spatial = 0, block = 1;
  std::int64_t blocks() const { return (channels + block - 1) / block; }
  std::int64_t elements() const { return batch * blocks() * spatial * block; }  // padding included
};

// x [batch, in_channels, in_d, in_h, in_w], w [out_channels, in_channels / groups, kernel_d, kernel_h, kernel_w].
// Images have a depth of 1, and signals a height of 1 too: of missing axes all memory is the same.
struct ConvolutionGeometry {
  std::int64_t batch = 0, in_channels = 0, in_d = 1, in_h = 0, in_w = 0, out_channels = 0;
  std::int64_t kernel_d = 1, kernel_h = 1, kernel_w = 1, stride_d = 1, stride_h = 1, stride_w = 1;
  std::int64_t padding_d = 0, padding_h = 0, padding_w = 0, dilation_d = 1, dilation_h = 1, dilation_w = 1, groups = 1;

  std::int64_t out_d() const { return out(in_d, kernel_d, stride_d, padding_d, dilation_d); }
  std::int64_t out_h() const { return out(in_h, kernel_h, stride_h, padding_h, dilation_h); }
  std::int64_t out_w() const { return out(in_w, kernel_w, stride_w, padding_w, dilation_w); }
  // Whether nothing happens along the depth, so that a kernel for images serves.
  bool is_planar() const { return in_d == 1 && kernel_d == 1 && padding_d == 0; }

 private:
  // 0 where the window is larger than the padded image.
  static std::int64_t out(std::int64_t in, std::int64_t k, std::int64_t stride, std::int64_t pad, std::int64_t dil) {
    const std::int64_t room = in + 2 * pad - dil * (k - 1) - 1;
    return room < 0 ? 0 : room / stride + 1;
  }
};

// x [batch, channels, in_d, in_h, in_w], y [batch, channels, out_d, out_h, out_w], or on blocks of channels; missing
// axes as above.
struct PoolGeometry {
  std::int64_t batch = 0, channels = 0, in_d = 1, in_h = 0, in_w = 0, kernel_d = 1, kernel_h = 1, kernel_w = 1;
  std::int64_t stride_d = 1, stride_h = 1, stride_w = 1, padding_d = 0, padding_h = 0, padding_w = 0;
  std::int64_t dilation_d = 1, dilation_h = 1, dilation_w = 1;  // max pooling only
  bool ceil_mode = false;                                       // the last window may hang over the edge
  bool count_include_pad = true;  // average pooling: divide by the window with its padding
  std::int64_t block = 1;         // max pooling only

  std::int64_t out_d() const { return out(in_d, kernel_d, stride_d, padding_d, dilation_d); }
  std::int64_t out_h() const { return out(in_h, kernel_h, stride_h, padding_h, dilation_h); }
  std::int64_t out_w() const { return out(in_w, kernel_w, stride_w, padding_w, dilation_w); }
  std::int64_t in_spatial() const { return in_d * in_h * in_w; }
  std::int64_t out_spatial() const { return out_d() * out_h() * out_w(); }
  std::int64_t window() const { return kernel_d * kernel_h * kernel_w; }
  std::int64_t blocks() const { return (channels + block - 1) / block; }
  bool is_planar() const { return in_d == 1 && kernel_d == 1 && padding_d == 0; }

 private:
  // 0 where no window fits. With ceil_mode a window must begin in the image or before it.
  std::int64_t out(std::int64_t in, std::int64_t k, std::int64_t stride, std::int64_t pad, std::int64_t dil) const {
    const std::int64_t room = in + 2 * pad - dil * (k - 1) - 1 + (ceil_mode ? stride - 1 : 0);
    if (room < 0) return 0;
    const std::int64_t n = room / stride + 1;
    return ceil_mode && (n - 1) * stride >= in + pad ? n - 1 : n;
  }
};

inline ConvolutionGeometry convolution_geometry(const ConvolutionOptions& o, const Shape& x, const Shape& weight) {
  ConvolutionGeometry g{
      .batch = x[0], .in_channels = x[1], .in_h = 1, .in_w = 1, .out_channels = weight[0], .groups = o.groups};
  const int axes = static_cast<int>(o.axes.size());
  const auto take = [&](int i, std::int64_t& in, std::int64_t& kernel, std::int64_t& stride, std::int64_t& padding,
                        std::int64_t& dilation) {
    if (i < 0) return;
    const ConvolutionAxis& axis = o.axes[static_cast<std::size_t>(i)];
    in = x[i + 2];
    kernel = weight[i + 2];
    stride = axis.stride;
    padding = axis.padding;
    dilation = axis.dilation;
  };
  take(axes - 3, g.in_d, g.kernel_d, g.stride_d, g.padding_d, g.dilation_d);
  take(axes - 2, g.in_h, g.kernel_h, g.stride_h, g.padding_h, g.dilation_h);
  take(axes - 1, g.in_w, g.kernel_w, g.stride_w, g.padding_w, g.dilation_w);
  return g;
}

inline PoolGeometry pool_geometry(const PoolOptions& o, const Shape& x) {
  PoolGeometry g{.batch = x[0],
                 .channels = x[1],
                 .in_h = 1,
                 .in_w = 1,
                 .ceil_mode = o.ceil_mode,
                 .count_include_pad = o.count_include_pad};
  const int axes = static_cast<int>(o.axes.size());
  const auto take = [&](int i, std::int64_t& in, std::int64_t& kernel, std::int64_t& stride, std::int64_t& padding,
                        std::int64_t& dilation) {
    if (i < 0) return;
    const PoolAxis& axis = o.axes[static_cast<std::size_t>(i)];
    in = x[i + 2];
    kernel = axis.kernel;
    stride = axis.stride;
    padding = axis.padding;
    dilation = axis.dilation;
  };
  take(axes - 3, g.in_d, g.kernel_d, g.stride_d, g.padding_d, g.dilation_d);
  take(axes - 2, g.in_h, g.kernel_h, g.stride_h, g.padding_h, g.dilation_h);
  take(axes - 1, g.in_w, g.kernel_w, g.stride_w, g.padding_w, g.dilation_w);
  return g;
}

// The block size of the channels in `offered` if these kernels support it (8 or 16), else 1.
inline std::int64_t known_block(const Shape& shape, const Layout& offered) {
  const std::int64_t block = offered.channel_block(shape);
  return block == 8 || block == 16 ? block : 1;
}

}  // namespace lockstep::kernels

// Sizes for kernels of several sets: channels of images, convolutions, pooling windows.
#pragma once

#include <cstdint>

#include "lockstep/graph/layout.h"
#include "lockstep/ops/conv2d.h"
#include "lockstep/ops/pool2d.h"

namespace lockstep::kernels {

// [batch][channels / block][spatial][block]: block 1 is plain NCHW, 8 and 16 are blocked layouts with padded channels.
struct BatchNormView {
  std::int64_t batch = 0, channels = 0, spatial = 0, block = 1;
  std::int64_t blocks() const { return (channels + block - 1) / block; }
  std::int64_t elements() const { return batch * blocks() * spatial * block; }  // padding included
};

// x [batch, in_channels, in_h, in_w], w [out_channels, in_channels / groups, kernel_h, kernel_w].
struct Conv2dGeometry {
  std::int64_t batch = 0, in_channels = 0, in_h = 0, in_w = 0, out_channels = 0, kernel_h = 1, kernel_w = 1;
  std::int64_t stride_h = 1, stride_w = 1, padding_h = 0, padding_w = 0, dilation_h = 1, dilation_w = 1, groups = 1;

  std::int64_t out_h() const { return out(in_h, kernel_h, stride_h, padding_h, dilation_h); }
  std::int64_t out_w() const { return out(in_w, kernel_w, stride_w, padding_w, dilation_w); }

 private:
  // 0 where the window is larger than the padded image.
  static std::int64_t out(std::int64_t in, std::int64_t k, std::int64_t stride, std::int64_t pad, std::int64_t dil) {
    const std::int64_t room = in + 2 * pad - dil * (k - 1) - 1;
    return room < 0 ? 0 : room / stride + 1;
  }
};

// x [batch, channels, in_h, in_w], y [batch, channels, out_h, out_w], or on blocks of channels.
struct PoolGeometry {
  std::int64_t batch = 0, channels = 0, in_h = 0, in_w = 0, kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1;
  std::int64_t padding_h = 0, padding_w = 0;
  std::int64_t dilation_h = 1, dilation_w = 1;  // max pooling only
  bool ceil_mode = false;                       // the last window may hang over the edge
  bool count_include_pad = true;                // average pooling: divide by the window with its padding
  std::int64_t block = 1;                       // max pooling only

  std::int64_t out_h() const { return out(in_h, kernel_h, stride_h, padding_h, dilation_h); }
  std::int64_t out_w() const { return out(in_w, kernel_w, stride_w, padding_w, dilation_w); }
  std::int64_t blocks() const { return (channels + block - 1) / block; }

 private:
  // 0 where no window fits. With ceil_mode a window must begin in the image or before it.
  std::int64_t out(std::int64_t in, std::int64_t k, std::int64_t stride, std::int64_t pad, std::int64_t dil) const {
    const std::int64_t room = in + 2 * pad - dil * (k - 1) - 1 + (ceil_mode ? stride - 1 : 0);
    if (room < 0) return 0;
    const std::int64_t n = room / stride + 1;
    return ceil_mode && (n - 1) * stride >= in + pad ? n - 1 : n;
  }
};

inline Conv2dGeometry conv2d_geometry(const Conv2dOptions& o, const Shape& x, const Shape& weight) {
  return {.batch = x[0],
          .in_channels = x[1],
          .in_h = x[2],
          .in_w = x[3],
          .out_channels = weight[0],
          .kernel_h = weight[2],
          .kernel_w = weight[3],
          .stride_h = o.stride_h,
          .stride_w = o.stride_w,
          .padding_h = o.padding_h,
          .padding_w = o.padding_w,
          .dilation_h = o.dilation_h,
          .dilation_w = o.dilation_w,
          .groups = o.groups};
}

inline PoolGeometry pool_geometry(const Pool2dOptions& o, const Shape& x) {
  return {.batch = x[0],
          .channels = x[1],
          .in_h = x[2],
          .in_w = x[3],
          .kernel_h = o.kernel_h,
          .kernel_w = o.kernel_w,
          .stride_h = o.stride_h,
          .stride_w = o.stride_w,
          .padding_h = o.padding_h,
          .padding_w = o.padding_w,
          .dilation_h = o.dilation_h,
          .dilation_w = o.dilation_w,
          .ceil_mode = o.ceil_mode,
          .count_include_pad = o.count_include_pad};
}

// The block size of the channels in `offered` if these kernels support it (8 or 16), else 1.
inline std::int64_t known_block(const Shape& shape, const Layout& offered) {
  const std::int64_t block = offered.channel_block(shape);
  return block == 8 || block == 16 ? block : 1;
}

}  // namespace lockstep::kernels

// Max, average and global average pooling as PyTorch defines them (rounding of ceil_mode included) on dense planes:
// x [batch, channels, in_h, in_w], y [batch, channels, out_h, out_w]; max pooling also on blocks of channels,
// [batch, channels / block, in_h, in_w, block] for a block of 8 or 16, where it writes padding 0. A plane depends on
// its own input alone. Outputs are overwritten and must not overlap inputs; nothing allocates.
#pragma once

#include <cstdint>

namespace lockstep::generic {

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

// `index` [as y] gets the position of each maximum in its window, h * kernel_w + w: of equal values the first, of
// values with a NaN the last NaN, which is what y becomes. A window that holds no element of the image gives -infinity
// and 0, a position outside the image. uint8_t serves windows of up to 255 elements. T: float, double, BFloat16.
template <class T, class Index>
void max_pool_forward(const PoolGeometry& g, const T* x, T* y, Index* index);
// Positions outside the image pass nothing on. Sums are taken in float for bf16.
template <class T, class Index>
void max_pool_backward(const PoolGeometry& g, const T* dy, const Index* index, T* dx);

// These take no notice of a dilation.
template <class T>
void average_pool_forward(const PoolGeometry& g, const T* x, T* y);
template <class T>
void average_pool_backward(const PoolGeometry& g, const T* dy, T* dx);

// x [planes, spatial] -> y [planes], planes = batch * channels; summed in double.
template <class T>
void global_average_pool_forward(std::int64_t planes, std::int64_t spatial, const T* x, T* y);
template <class T>
void global_average_pool_backward(std::int64_t planes, std::int64_t spatial, const T* dy, T* dx);

}  // namespace lockstep::generic

// Max, average and global average pooling as PyTorch defines them (rounding of ceil_mode included) on dense images:
// x [batch, channels, in_d, in_h, in_w], y [batch, channels, out_d, out_h, out_w]; max pooling also on blocks of
// channels, [batch, channels / block, in_d, in_h, in_w, block] for a block of 8 or 16, where it writes padding 0. A
// channel depends on its own input alone. Outputs are overwritten and must not overlap inputs; nothing allocates.
#pragma once

#include <cstdint>

#include "lockstep/kernels/common/geometry.h"

namespace lockstep::kernels::generic {

// `index` [as y] gets the position of each maximum in its window, (d * kernel_h + h) * kernel_w + w: of equal values
// the first, of values with a NaN the last NaN, which is what y becomes. A window that holds no element of the image
// gives -infinity and 0, a position outside the image. uint8_t serves windows of up to 255 elements. T: float, double,
// BFloat16.
template <class T, class Index>
void max_pool_forward(const PoolGeometry& g, const T* x, T* y, Index* index);
// Positions outside the image contribute nothing. bf16 is summed in float.
template <class T, class Index>
void max_pool_backward(const PoolGeometry& g, const T* dy, const Index* index, T* dx);

// These ignore a dilation.
template <class T>
void average_pool_forward(const PoolGeometry& g, const T* x, T* y);
template <class T>
void average_pool_backward(const PoolGeometry& g, const T* dy, T* dx);

// x [planes, spatial] -> y [planes], planes = batch * channels; summed in double.
template <class T>
void global_average_pool_forward(std::int64_t planes, std::int64_t spatial, const T* x, T* y);
template <class T>
void global_average_pool_backward(std::int64_t planes, std::int64_t spatial, const T* dy, T* dx);

}  // namespace lockstep::kernels::generic

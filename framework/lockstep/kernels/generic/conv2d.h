// 2-d convolution (cross-correlation, as PyTorch's conv2d) on dense arrays: x [batch, in_channels, in_h, in_w],
// w [out_channels, in_channels / groups, kernel_h, kernel_w], y [batch, out_channels, out_h, out_w]. Products by
// OpenBLAS over im2col one sample and group at a time, 1 x 1 without im2col, and direct loops where a group is too
// small for a product. Outputs are overwritten and must not overlap inputs. `scratch` has the number of elements that
// conv2d_scratch() says, and is the caller's; nothing allocates.
#pragma once

#include <cstdint>

#include "lockstep/kernels/common/geometry.h"

namespace lockstep::kernels::generic {

std::int64_t conv2d_forward_scratch(const Conv2dGeometry& g);
std::int64_t conv2d_backward_data_scratch(const Conv2dGeometry& g);
std::int64_t conv2d_backward_weights_scratch(const Conv2dGeometry& g);

// bias [out_channels] or null.
template <class T>
void conv2d_forward(const Conv2dGeometry& g, const T* x, const T* w, const T* bias, T* y, T* scratch);
template <class T>
void conv2d_backward_data(const Conv2dGeometry& g, const T* dy, const T* w, T* dx, T* scratch);
// Zero for an empty batch.
template <class T>
void conv2d_backward_weights(const Conv2dGeometry& g, const T* x, const T* dy, T* dw, T* scratch);

}  // namespace lockstep::kernels::generic

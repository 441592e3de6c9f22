// Convolution (cross-correlation, as PyTorch's conv1d to conv3d) on dense arrays: x [batch, in_channels, in_d, in_h,
// in_w], w [out_channels, in_channels / groups, kernel_d, kernel_h, kernel_w], y [batch, out_channels, out_d, out_h,
// out_w]. Products (by `way`, matrix_product.h) over im2col one sample and group at a time, filters of one element
// without im2col, and direct loops, of portable bits, where a group is too small for a product. Outputs are overwritten
// and must not overlap inputs. `scratch` has the number of elements that the ..._scratch() function says for the same
// way, and is the caller's; nothing allocates.
#pragma once

#include <cstdint>

#include "lockstep/kernels/common/geometry.h"
#include "lockstep/kernels/generic/matrix_product.h"

namespace lockstep::kernels::generic {

std::int64_t convolution_forward_scratch(const ConvolutionGeometry& g,
                                         MatrixProduct::Way way = MatrixProduct::Way::Blas);
std::int64_t convolution_backward_data_scratch(const ConvolutionGeometry& g,
                                               MatrixProduct::Way way = MatrixProduct::Way::Blas);
std::int64_t convolution_backward_weights_scratch(const ConvolutionGeometry& g,
                                                  MatrixProduct::Way way = MatrixProduct::Way::Blas);

// bias [out_channels] or null.
template <class T>
void convolution_forward(const ConvolutionGeometry& g, const T* x, const T* w, const T* bias, T* y, T* scratch,
                         MatrixProduct::Way way = MatrixProduct::Way::Blas);
template <class T>
void convolution_backward_data(const ConvolutionGeometry& g, const T* dy, const T* w, T* dx, T* scratch,
                               MatrixProduct::Way way = MatrixProduct::Way::Blas);
// Zero for an empty batch.
template <class T>
void convolution_backward_weights(const ConvolutionGeometry& g, const T* x, const T* dy, T* dw, T* scratch,
                                  MatrixProduct::Way way = MatrixProduct::Way::Blas);

}  // namespace lockstep::kernels::generic

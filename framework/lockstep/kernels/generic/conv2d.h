// 2-d convolution (cross-correlation, as PyTorch's conv2d) on dense arrays: x [batch, in_channels, in_h, in_w],
// w [out_channels, in_channels / groups, kernel_h, kernel_w], y [batch, out_channels, out_h, out_w]. Products by
// OpenBLAS over im2col one sample and group at a time, 1 x 1 without im2col, and direct loops where a group is too
// small for a product. Outputs are overwritten and must not overlap inputs. `scratch` has the number of elements that
// conv2d_scratch() says, and is the caller's; nothing allocates.
#pragma once

#include <cstdint>

namespace lockstep::generic {

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

}  // namespace lockstep::generic

// The number of places that a window (of a convolution or a pooling) takes along one axis.
#pragma once

#include <cstdint>

namespace lockstep {

// `in` values with `padding` more at each end, windows of `kernel` values that lie `dilation` apart, one window every
// `stride` values. In ceil mode a last window may reach over the end; as in PyTorch, one that would start in the right
// padding is dropped.
inline std::int64_t window_count(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                                 std::int64_t dilation, bool ceil_mode = false) {
  const std::int64_t span = in + 2 * padding - dilation * (kernel - 1) - 1;
  std::int64_t count = (span + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  if (ceil_mode && (count - 1) * stride >= in + padding) --count;
  return count;
}

}  // namespace lockstep

// Windows that move over the spatial axes of (samples, channels, axes...): of convolutions and pooling, which have one
// to three such axes, the outermost first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

inline constexpr int kMostAxes = 3;

// The axes' names in messages, by their number: "height, width".
inline std::string_view axis_names(int axes) {
  constexpr std::string_view kNames[] = {"", "length", "height, width", "depth, height, width"};
  return axes >= 1 && axes <= kMostAxes ? kNames[axes] : kNames[0];
}

// One number of each axis as text: "3x3". `number` maps an element of `axes` to its number.
template <class Axis, class Number>
std::string by_axis(const std::vector<Axis>& axes, Number number) {
  std::string text;
  for (const Axis& axis : axes) {
    if (!text.empty()) text += 'x';
    text += std::to_string(number(axis));
  }
  return text;
}
inline std::string by_axis(const std::vector<std::int64_t>& sizes) {
  return by_axis(sizes, [](std::int64_t size) { return size; });
}

// The number of places that a window takes along one axis: of `in` values with `padding` more at each end, windows of
// `kernel` values that lie `dilation` apart, one window every `stride` values. In ceil mode a last window may reach
// over the end; as in PyTorch, one that would start in the right padding is dropped.
inline std::int64_t window_count(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                                 std::int64_t dilation, bool ceil_mode = false) {
  const std::int64_t span = in + 2 * padding - dilation * (kernel - 1) - 1;
  std::int64_t count = (span + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  if (ceil_mode && (count - 1) * stride >= in + padding) --count;
  return count;
}

}  // namespace lockstep

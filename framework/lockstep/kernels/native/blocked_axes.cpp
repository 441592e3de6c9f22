#include "lockstep/kernels/native/blocked_axes.h"

#include <algorithm>

namespace lockstep::kernels::native {
namespace {

// Adds a position to the last class, or begins a new one where it meets other taps. `taps` are those that the position
// meets, with the source's positions there.
void put(std::vector<AxisClass>& classes, const AxisClass& position, std::size_t first_of_residue) {
  if (classes.size() > first_of_residue) {
    AxisClass& last = classes.back();
    const std::int64_t moved = last.count * last.source_step;
    const bool same = std::ranges::equal(last.taps, position.taps, [&](AxisClass::Tap a, AxisClass::Tap b) {
      return a.index == b.index && a.source + moved == b.source;
    });
    if (same) {
      ++last.count;
      return;
    }
  }
  classes.push_back(position);
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

}  // namespace

std::array<AxisSizes, 3> axes_of(const ConvolutionGeometry& g) {
  return {AxisSizes{g.in_d, g.out_d(), g.kernel_d, g.stride_d, g.padding_d, g.dilation_d},
          AxisSizes{g.in_h, g.out_h(), g.kernel_h, g.stride_h, g.padding_h, g.dilation_h},
          AxisSizes{g.in_w, g.out_w(), g.kernel_w, g.stride_w, g.padding_w, g.dilation_w}};
}

std::vector<AxisClass> forward_classes(const AxisSizes& a) {
  std::vector<AxisClass> classes;
  for (std::int64_t o = 0; o < a.out; ++o) {
    AxisClass position{.first = o, .step = 1, .count = 1, .source_step = a.stride, .taps = {}};
    for (std::int64_t k = 0; k < a.kernel; ++k) {
      const std::int64_t i = o * a.stride - a.padding + k * a.dilation;
      if (i >= 0 && i < a.in) position.taps.push_back({k, i});
    }
    put(classes, position, 0);
  }
  return classes;
}

std::vector<AxisClass> backward_classes(const AxisSizes& a) {
  std::vector<AxisClass> classes;
  for (std::int64_t residue = 0; residue < std::min(a.stride, a.in); ++residue) {
    const std::size_t begin = classes.size();
    for (std::int64_t i = residue; i < a.in; i += a.stride) {
      AxisClass position{.first = i, .step = a.stride, .count = 1, .source_step = 1, .taps = {}};
      for (std::int64_t k = 0; k < a.kernel; ++k) {
        const std::int64_t o = i + a.padding - k * a.dilation;
        if (o >= 0 && o % a.stride == 0 && o / a.stride < a.out) position.taps.push_back({k, o / a.stride});
      }
      put(classes, position, begin);
    }
  }
  return classes;
}

TapRange range_of_tap(const AxisSizes& a, std::int64_t index) {
  const std::int64_t shift = a.padding - index * a.dilation;  // of the input against the output
  const std::int64_t begin = std::max<std::int64_t>(0, -floor_divide(-shift, a.stride));
  const std::int64_t end = std::min(a.out, floor_divide(a.in - 1 + shift, a.stride) + 1);
  if (begin >= end) return {};
  return {begin, end - begin, begin * a.stride - shift};
}

}  // namespace lockstep::kernels::native

#include "lockstep/ops/axis_map.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep {
namespace {

// The map whose output i has the taps make_taps(i).
template <class F>
AxisMap map_of(std::int64_t in, std::int64_t out, F make_taps) {
  std::vector<std::vector<AxisMap::Tap>> taps;
  for (std::int64_t i = 0; i < out; ++i) taps.push_back(make_taps(i));
  return {in, std::move(taps)};
}

}  // namespace

AxisMap::AxisMap(std::int64_t in, std::vector<std::vector<Tap>> taps) : in_(in), taps_(std::move(taps)) {
  for (const auto& of_output : taps_) {
    for (const Tap& tap : of_output) {
      check(tap.from >= 0 && tap.from < in_, "axis_map", "a tap reads element {}, expected one of {}", tap.from, in_);
    }
  }
}

AxisMap AxisMap::transposed() const {
  std::vector<std::vector<Tap>> taps(static_cast<std::size_t>(in_));
  for (std::size_t i = 0; i < taps_.size(); ++i) {
    for (const Tap& tap : taps_[i]) {
      taps[static_cast<std::size_t>(tap.from)].push_back({static_cast<std::int64_t>(i), tap.weight});
    }
  }
  return {out(), std::move(taps)};
}

AxisMap AxisMap::identity(std::int64_t size) {
  return map_of(size, size, [](std::int64_t i) { return std::vector<Tap>{{i, 1}}; });
}

// Integers where they can be: PyTorch's floating-point product falls below a whole number for some ratios.
AxisMap AxisMap::nearest(std::int64_t in, std::int64_t out, double scale) {
  return map_of(in, out, [=](std::int64_t i) {
    const std::int64_t at =
        scale > 0 ? static_cast<std::int64_t>(std::floor(static_cast<double>(i) / scale)) : i * in / out;
    return std::vector<Tap>{{std::min(at, in - 1), 1}};
  });
}

AxisMap AxisMap::linear(std::int64_t in, std::int64_t out, bool align_corners, double scale) {
  double step = scale > 0 ? 1 / scale : static_cast<double>(in) / static_cast<double>(out);
  if (align_corners) step = out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
  return map_of(in, out, [=](std::int64_t i) {
    const double place =
        align_corners ? static_cast<double>(i) * step : std::max(0.0, (static_cast<double>(i) + 0.5) * step - 0.5);
    const std::int64_t left = std::min(static_cast<std::int64_t>(std::floor(place)), in - 1);
    const double share = std::clamp(place - static_cast<double>(left), 0.0, 1.0);
    if (left + 1 == in || share == 0) return std::vector<Tap>{{left, 1}};
    return std::vector<Tap>{{left, 1 - share}, {left + 1, share}};
  });
}

AxisMap AxisMap::area(std::int64_t in, std::int64_t out) {
  return map_of(in, out, [=](std::int64_t i) {
    const std::int64_t begin = i * in / out, end = ((i + 1) * in + out - 1) / out;
    std::vector<Tap> taps;
    for (std::int64_t k = begin; k < end; ++k) taps.push_back({k, 1 / static_cast<double>(end - begin)});
    return taps;
  });
}

}  // namespace lockstep

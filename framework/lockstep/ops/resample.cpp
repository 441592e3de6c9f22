#include "lockstep/ops/resample.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/ops/pool.h"
#include "lockstep/ops/shape_axes.h"
#include "lockstep/ops/window.h"

namespace lockstep {
namespace {

std::vector<std::int64_t> spatial_sizes(std::string_view op, Value x) {
  const Shape& s = x.shape();
  check(s.rank() >= 3 && s.rank() <= 2 + kMostAxes, op,
        "{}: input is {}, expected (samples, channels) and 1 to {} spatial axes", axes::path(x), s.str(), kMostAxes);
  return {s.dims().begin() + 2, s.dims().end()};
}

// One number per axis, of numbers for each or of one for all.
template <class T>
std::vector<T> per_axis(std::string_view op, Value x, std::vector<T> numbers, std::size_t axes) {
  if (numbers.size() == 1) numbers.resize(axes, numbers[0]);
  check(numbers.size() == axes, op, "{}: options give {} numbers, expected 1 or one for each of {} axes", axes::path(x),
        numbers.size(), axes);
  return numbers;
}

// "nearest 4x4 to 8x8"
std::string description(std::string_view what, const std::vector<AxisMap>& maps) {
  return fmt::format("{} {} to {}", what, by_axis(maps, [](const AxisMap& m) { return m.in(); }),
                     by_axis(maps, [](const AxisMap& m) { return m.out(); }));
}

Value resample(Value x, std::string_view what, std::vector<AxisMap> maps) {
  std::string text = description(what, maps);
  return apply_op(std::make_shared<ResampleOp>(std::move(maps), std::move(text)), {x});
}

// The input element that element i of the padded axis shows; -1 for a zero.
std::int64_t padded_from(std::int64_t i, std::int64_t in, PaddingMode mode) {
  if (i >= 0 && i < in) return i;
  switch (mode) {
    case PaddingMode::Zeros:
      break;
    case PaddingMode::Reflect:
      return i < 0 ? -i : 2 * (in - 1) - i;
    case PaddingMode::Replicate:
      return i < 0 ? 0 : in - 1;
    case PaddingMode::Circular:
      return i < 0 ? i + in : i - in;
  }
  return -1;
}

AxisMap padding_map(std::int64_t in, std::int64_t padding, PaddingMode mode) {
  std::vector<std::vector<AxisMap::Tap>> taps;
  for (std::int64_t i = -padding; i < in + padding; ++i) {
    const std::int64_t from = padded_from(i, in, mode);
    taps.push_back(from < 0 ? std::vector<AxisMap::Tap>{} : std::vector<AxisMap::Tap>{{from, 1}});
  }
  return {in, std::move(taps)};
}

constexpr std::string_view kPaddings[] = {"zero padding", "reflect padding", "replicate padding", "circular padding"};

}  // namespace

ResampleOp::ResampleOp(std::vector<AxisMap> maps, std::string what) : maps_(std::move(maps)), what_(std::move(what)) {
  check(!maps_.empty() && maps_.size() <= kMostAxes, name(), "there are {} maps, expected 1 to {}", maps_.size(),
        kMostAxes);
}

std::vector<Type> ResampleOp::infer(std::string_view path, std::span<const Type> inputs) const {
  const Shape& x = inputs[0].shape;
  Shape expected = x, y = x;
  bool fits = x.rank() == static_cast<int>(maps_.size()) + 2;
  for (std::size_t i = 0; fits && i < maps_.size(); ++i) {
    expected[static_cast<int>(i) + 2] = maps_[i].in();
    y[static_cast<int>(i) + 2] = maps_[i].out();
  }
  fits = fits && x == expected;
  check(fits, name(), "{}: input is {}, expected (samples, channels) and the sizes {}", path, x.str(),
        by_axis(maps_, [](const AxisMap& m) { return m.in(); }));
  return {{y, inputs[0].dtype}};
}

std::vector<Value> ResampleOp::gradient(const Request& r) const {
  constexpr std::string_view kSuffix = " transposed";
  std::vector<AxisMap> maps;
  for (const AxisMap& map : maps_) maps.push_back(map.transposed());
  std::string what = what_;
  if (what.ends_with(kSuffix)) {
    what.resize(what.size() - kSuffix.size());
  } else {
    what += kSuffix;
  }
  return {apply_op(std::make_shared<ResampleOp>(std::move(maps), std::move(what)), {r.gradients[0]})};
}

double ResampleOp::flops(std::span<const Type>, std::span<const Type> outputs) const {
  double taps = 2.0 * static_cast<double>(outputs[0].shape[0] * outputs[0].shape[1]);
  for (const AxisMap& map : maps_) {
    double of_axis = 0;
    for (const auto& of_output : map.taps()) of_axis += static_cast<double>(of_output.size());
    taps *= of_axis;
  }
  return taps;
}

Value upsample(Value x, UpsampleOptions o) {
  constexpr std::string_view kOp = "upsample";
  const std::vector<std::int64_t> in = spatial_sizes(kOp, x);
  const std::string path = axes::path(x);
  check(o.size.empty() != o.scale.empty(), kOp, "{}: options give {}, expected either a size or a scale", path,
        o.size.empty() ? "neither size nor scale" : "both size and scale");
  check(o.mode == Interpolation::Linear || !o.align_corners, kOp,
        "{}: corners are aligned in mode nearest, expected mode linear", path);
  std::vector<double> scale(in.size(), 0.0);
  if (o.size.empty()) {
    scale = per_axis(kOp, x, o.scale, in.size());
    for (std::size_t i = 0; i < in.size(); ++i) {
      check(std::isfinite(scale[i]) && scale[i] > 0, kOp, "{}: the scale is {}, expected a positive number", path,
            scale[i]);
      o.size.push_back(static_cast<std::int64_t>(std::floor(static_cast<double>(in[i]) * scale[i])));
    }
  }
  const std::vector<std::int64_t> size = per_axis(kOp, x, o.size, in.size());
  std::vector<AxisMap> maps;
  for (std::size_t i = 0; i < in.size(); ++i) {
    check(size[i] > 0 && in[i] > 0, kOp, "{}: {} elements become {} along an axis, expected at least 1 of each", path,
          in[i], size[i]);
    maps.push_back(o.mode == Interpolation::Nearest ? AxisMap::nearest(in[i], size[i], scale[i])
                                                    : AxisMap::linear(in[i], size[i], o.align_corners, scale[i]));
  }
  std::string what = o.mode == Interpolation::Nearest ? "nearest" : "linear";
  if (o.align_corners) what += " with aligned corners";
  if (!o.scale.empty()) what += fmt::format(" by {}", fmt::join(scale, "x"));
  return resample(x, what, std::move(maps));
}

Value adaptive_average_pool(Value x, std::vector<std::int64_t> sizes) {
  constexpr std::string_view kOp = "adaptive_average_pool";
  const std::vector<std::int64_t> in = spatial_sizes(kOp, x);
  const std::vector<std::int64_t> out = per_axis(kOp, x, std::move(sizes), in.size());
  PoolOptions windows;
  std::vector<AxisMap> maps;
  bool equal = true;
  for (std::size_t i = 0; i < in.size(); ++i) {
    check(out[i] > 0 && in[i] > 0, kOp, "{}: {} elements become {} along an axis, expected at least 1 of each",
          axes::path(x), in[i], out[i]);
    equal = equal && in[i] % out[i] == 0;
    windows.axes.push_back({.kernel = in[i] / out[i], .stride = in[i] / out[i]});
    maps.push_back(AxisMap::area(in[i], out[i]));
  }
  return equal ? pool(Pool::Average, x, std::move(windows)) : resample(x, "means", std::move(maps));
}

Value pad_spatial(Value x, const std::vector<std::int64_t>& padding, PaddingMode mode) {
  constexpr std::string_view kOp = "pad_spatial";
  const std::vector<std::int64_t> in = spatial_sizes(kOp, x);
  check(padding.size() == in.size(), kOp, "{}: there are {} paddings, expected one for each of {} axes", axes::path(x),
        padding.size(), in.size());
  const std::string_view what = kPaddings[static_cast<std::size_t>(mode)];
  std::vector<AxisMap> maps;
  for (std::size_t i = 0; i < in.size(); ++i) {
    check(padding[i] >= 0, kOp, "{}: padding is {}, expected 0 or more", axes::path(x), padding[i]);
    check(mode != PaddingMode::Replicate || in[i] > 0, kOp, "{}: {} of an empty axis", axes::path(x), what);
    const bool wraps = mode == PaddingMode::Circular, mirrors = mode == PaddingMode::Reflect;
    const std::int64_t most = wraps ? in[i] : in[i] - 1;
    check((!wraps && !mirrors) || padding[i] <= most, kOp, "{}: {} of {} elements by {}, expected at most {}",
          axes::path(x), what, in[i], padding[i], most);
    maps.push_back(padding_map(in[i], padding[i], mode));
  }
  return resample(x, what, std::move(maps));
}

}  // namespace lockstep

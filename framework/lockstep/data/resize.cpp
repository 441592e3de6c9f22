#include "lockstep/data/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "lockstep/core/error.h"

namespace lockstep::data {
namespace {

constexpr const char* kResize = "resize";

template <class T, class W>
T stored(W value) {
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    return static_cast<T>(std::lrint(std::clamp(value, W{0}, W{255})));
  } else {
    return value;
  }
}

}  // namespace

Shape resized(const Shape& image, std::int64_t shorter_side) {
  check(image.rank() == 3 && image.elements() > 0, kResize, "images are {}, expected (channels, height, width) above 0",
        image.str());
  check(shorter_side > 0, kResize, "the shorter side is {}, expected at least 1", shorter_side);
  const std::int64_t height = image[1], width = image[2];
  if (height <= width) return {image[0], shorter_side, shorter_side * width / height};
  return {image[0], shorter_side * height / width, shorter_side};
}

// The weights of an output are a triangle around its centre in the input, cut at the borders, with sum 1. Enlarged
// images have two weights, those of linear interpolation.
template <class T>
ResizeImages::Axis<T>::Axis(std::int64_t in, std::int64_t out) {
  const double scale = static_cast<double>(in) / static_cast<double>(out), half_width = std::max(scale, 1.0);
  for (std::int64_t i = 0; i < out; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const auto begin = std::max<std::int64_t>(0, static_cast<std::int64_t>(std::floor(centre - half_width + 0.5)));
    const auto end = std::min(in, static_cast<std::int64_t>(std::floor(centre + half_width + 0.5)));
    std::vector<double> weights;
    double sum = 0;
    for (std::int64_t x = begin; x < end; ++x) {
      const double distance = std::abs(static_cast<double>(x) + 0.5 - centre) / half_width;
      weights.push_back(std::max(0.0, 1 - distance));
      sum += weights.back();
    }
    for (const double w : weights) weight.push_back(static_cast<T>(w / sum));
    first.push_back(begin);
    first_weight.push_back(static_cast<std::int64_t>(weight.size()));
  }
}

ResizeImages::ResizeImages(const Shape& image, std::int64_t shorter_side)
    : from_(image),
      to_(resized(image, shorter_side)),
      single_{{from_[1], to_[1]}, {from_[2], to_[2]}},
      double_{{from_[1], to_[1]}, {from_[2], to_[2]}} {}

std::vector<Field> ResizeImages::fields(const std::vector<Field>& in) const {
  std::vector<Field> out = in;
  Field& image = out[find_field(kResize, in, "image")];
  const bool known = image.dtype == DType::U8 || image.dtype == DType::F32 || image.dtype == DType::F64;
  check(known && image.shape == from_, kResize, "'image' is {} {}, expected u8, f32 or f64 {}", name_of(image.dtype),
        image.shape.str(), from_.str());
  image.shape = to_;
  return out;
}

// Each row of the output is first summed from rows of the input, and then along the row.
template <class T, class W>
void ResizeImages::scale(const Axes<W>& axes, const T* in, T* out) const {
  const std::int64_t height = from_[1], width = from_[2];
  std::vector<W> row(static_cast<std::size_t>(width));
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  for (std::int64_t c = 0; c < from_[0]; ++c) {
    const T* channel = in + c * height * width;
    for (std::int64_t y = 0; y < to_[1]; ++y) {
      const Axis<W>& rows = axes.rows;
      std::ranges::fill(row, W{0});
      for (std::int64_t k = rows.first_weight[at(y)]; k < rows.first_weight[at(y + 1)]; ++k) {
        const T* from = channel + (rows.first[at(y)] + k - rows.first_weight[at(y)]) * width;
        const W weight = rows.weight[at(k)];
        for (std::int64_t x = 0; x < width; ++x) row[at(x)] += weight * static_cast<W>(from[x]);
      }
      const Axis<W>& columns = axes.columns;
      for (std::int64_t x = 0; x < to_[2]; ++x) {
        const W* from = row.data() + columns.first[at(x)];
        W sum{0};
        for (std::int64_t k = columns.first_weight[at(x)]; k < columns.first_weight[at(x + 1)]; ++k)
          sum += columns.weight[at(k)] * *from++;
        *out++ = stored<T>(sum);
      }
    }
  }
}

void ResizeImages::apply(const SampleKey& /*key*/, const std::vector<Field>& shape,
                         std::span<const std::byte* const> in, std::span<std::byte* const> out) const {
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].name != "image") {
      if (shape[i].bytes() > 0) std::memcpy(out[i], in[i], shape[i].bytes());
    } else if (shape[i].dtype == DType::U8) {
      scale(single_, reinterpret_cast<const std::uint8_t*>(in[i]), reinterpret_cast<std::uint8_t*>(out[i]));
    } else if (shape[i].dtype == DType::F32) {
      scale(single_, reinterpret_cast<const float*>(in[i]), reinterpret_cast<float*>(out[i]));
    } else {
      scale(double_, reinterpret_cast<const double*>(in[i]), reinterpret_cast<double*>(out[i]));
    }
  }
}

}  // namespace lockstep::data

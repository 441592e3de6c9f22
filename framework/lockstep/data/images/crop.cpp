#include "lockstep/data/images/crop.h"

#include <algorithm>
#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/core/math.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kCrop = "crop";
constexpr int kTries = 10;  // as torchvision

AxisPart whole_axis(std::int64_t size, std::int64_t total) {
  return {.begin = 0, .end = static_cast<double>(size), .total = total, .outputs = {0, total}};
}

// The middle `count` pixels of an axis that is scaled to `total` pixels.
AxisPart middle_of(std::int64_t size, std::int64_t total, std::int64_t count) {
  AxisPart axis = whole_axis(size, total);
  // Python's round(), which torchvision calls, rounds a half to the even number.
  const auto begin = static_cast<std::int64_t>(std::nearbyint(static_cast<double>(total - count) / 2));
  axis.outputs = {begin, begin + count};
  return axis;
}

ImagePart centre_part(const CropOptions& o, std::int64_t height, std::int64_t width) {
  const bool tall = height > width;
  const std::int64_t longer = o.shorter_side * (tall ? height : width) / (tall ? width : height);
  return {.rows = middle_of(height, tall ? longer : o.shorter_side, o.height),
          .columns = middle_of(width, tall ? o.shorter_side : longer, o.width)};
}

ImagePart part_at(const CropOptions& o, Range rows, Range columns) {
  const auto axis = [](const Range& range, std::int64_t total) {
    return AxisPart{.begin = static_cast<double>(range.begin),
                    .end = static_cast<double>(range.end),
                    .total = total,
                    .outputs = {0, total}};
  };
  return {.rows = axis(rows, o.height), .columns = axis(columns, o.width)};
}

std::int64_t rounded(double value) { return static_cast<std::int64_t>(std::nearbyint(value)); }

// The middle of the image with the nearest ratio of sides that is allowed.
ImagePart fallback_part(const CropOptions& o, std::int64_t height, std::int64_t width) {
  const double h = static_cast<double>(height), w = static_cast<double>(width), ratio = w / h;
  std::int64_t rows = height, columns = width;
  if (ratio < o.min_ratio) rows = std::clamp<std::int64_t>(rounded(w / o.min_ratio), 1, height);
  if (ratio > o.max_ratio) columns = std::clamp<std::int64_t>(rounded(h * o.max_ratio), 1, width);
  const std::int64_t top = (height - rows) / 2, left = (width - columns) / 2;
  return part_at(o, {top, top + rows}, {left, left + columns});
}

ImagePart random_part(const CropOptions& o, std::int64_t height, std::int64_t width, RandomStream& random) {
  const double area = static_cast<double>(height) * static_cast<double>(width);
  const double low = math::log(o.min_ratio), high = math::log(o.max_ratio);
  for (int i = 0; i < kTries; ++i) {
    const double target = area * random.uniform(o.min_area, o.max_area);
    const double ratio = math::exp(random.uniform(low, high));
    const std::int64_t columns = rounded(std::sqrt(target * ratio)), rows = rounded(std::sqrt(target / ratio));
    if (columns <= 0 || columns > width || rows <= 0 || rows > height) continue;
    const auto top = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(height - rows + 1)));
    const auto left = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(width - columns + 1)));
    return part_at(o, {top, top + rows}, {left, left + columns});
  }
  return fallback_part(o, height, width);
}

}  // namespace

void check_crop(const CropOptions& o) {
  check(o.height > 0 && o.width > 0, kCrop, "{} x {} pixels, expected at least 1 of each", o.height, o.width);
  check(o.crop != Crop::Centre || o.shorter_side >= std::max(o.height, o.width), kCrop,
        "the shorter side is {}, expected at least that of the crop of {} x {} pixels", o.shorter_side, o.height,
        o.width);
  check(o.min_area > 0 && o.min_area <= o.max_area && o.max_area <= 1, kCrop,
        "areas from {} to {} of the image, expected 0 < smallest <= largest <= 1", o.min_area, o.max_area);
  check(o.min_ratio > 0 && o.min_ratio <= o.max_ratio && std::isfinite(o.max_ratio), kCrop,
        "ratios of the sides from {} to {}, expected 0 < smallest <= largest", o.min_ratio, o.max_ratio);
}

ImagePart choose_part(const CropOptions& o, std::int64_t height, std::int64_t width, RandomStream& random) {
  switch (o.crop) {
    case Crop::Exact:
      check(height == o.height && width == o.width, kCrop,
            "the image has {} x {} pixels, expected {} x {} (rows x columns); add --image-size N, which crops or "
            "resizes images of other sizes",
            height, width, o.height, o.width);
      break;
    case Crop::Whole:
      break;
    case Crop::Centre:
      return centre_part(o, height, width);
    case Crop::Random:
      return random_part(o, height, width, random);
  }
  return {.rows = whole_axis(height, o.height), .columns = whole_axis(width, o.width)};
}

}  // namespace lockstep::data

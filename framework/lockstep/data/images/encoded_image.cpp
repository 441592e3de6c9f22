#include "lockstep/data/images/encoded_image.h"

#include <algorithm>
#include <array>

#include "lockstep/core/error.h"
#include "lockstep/data/images/image_formats.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kImageFile = "image";
constexpr std::array<std::uint8_t, 3> kJpegStart{0xFF, 0xD8, 0xFF};
constexpr std::array<std::uint8_t, 8> kPngStart{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};

bool starts_with(std::span<const std::byte> bytes, std::span<const std::uint8_t> start) {
  return bytes.size() >= start.size() &&
         std::equal(start.begin(), start.end(), bytes.begin(),
                    [](std::uint8_t expected, std::byte found) { return std::byte{expected} == found; });
}

}  // namespace

void EncodedImage::set_size(std::int64_t height, std::int64_t width, const ImageLimits& limits) {
  check(height > 0 && width > 0, kImageFile, "{}: {} rows and {} columns, expected at least 1 of each", place_, height,
        width);
  check(height <= limits.pixels / width, kImageFile, "{}: {} rows and {} columns, expected at most {} pixels", place_,
        height, width, limits.pixels);
  height_ = height;
  width_ = width;
}

void EncodedImage::check_region(const ImageRegion& region, int reduction) const {
  const auto inside = [&](const Range& part, std::int64_t whole) {
    const std::int64_t size = (whole + reduction - 1) / reduction;
    return part.begin >= 0 && part.begin < part.end && part.end <= size;
  };
  check(inside(region.rows, height_) && inside(region.columns, width_), kImageFile,
        "{}: rows [{}, {}) and columns [{}, {}) of an image of {} x {} reduced by {}, expected a part of it", place_,
        region.rows.begin, region.rows.end, region.columns.begin, region.columns.end, height_, width_, reduction);
}

std::unique_ptr<EncodedImage> open_image(std::span<const std::byte> bytes, std::string place,
                                         const ImageLimits& limits) {
  check(!bytes.empty(), kImageFile, "{}: has 0 bytes, expected a JPEG or PNG image", place);
  if (starts_with(bytes, kJpegStart)) return open_jpeg(bytes, std::move(place), limits);
  if (starts_with(bytes, kPngStart)) return open_png(bytes, std::move(place), limits);
  std::string start;
  for (const std::byte byte : bytes.first(std::min<std::size_t>(bytes.size(), 4)))
    start += formatted("{}{:02x}", start.empty() ? "" : " ", std::to_integer<unsigned>(byte));
  fail(kImageFile, "{}: begins with the bytes {}, expected a JPEG (ff d8 ff) or PNG (89 50 4e 47) image", place, start);
}

}  // namespace lockstep::data

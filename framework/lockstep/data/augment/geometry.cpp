#include "lockstep/data/augment/geometry.h"

#include <cmath>
#include <cstring>

#include "lockstep/core/error.h"
#include "lockstep/data/images/decoded_images.h"

namespace lockstep::data {

CropImage::CropImage(CropOptions options) : FieldTransform("crop", "image"), options_(options) { check_crop(options); }

Field CropImage::changed(const Field& before) const {
  expect_bytes(before);
  RandomStream unused(0, 0);
  choose_part(options_, before.shape[1], before.shape[2], unused);  // Crop::Exact expects a size
  Field after = before;
  after.shape = {before.shape[0], options_.height, options_.width};
  return after;
}

void CropImage::change(const SampleKey& key, const Field& before, const std::byte* in, std::byte* out) const {
  const std::int64_t height = before.shape[1], width = before.shape[2];
  RandomStream random = key.random(kCropNumbers);
  const ImagePart part = choose_part(options_, height, width, random);
  const ScaleAxis rows(part.rows, height), columns(part.columns, width);
  const auto* from = reinterpret_cast<const std::uint8_t*>(in);
  auto* to = reinterpret_cast<std::uint8_t*>(out);
  for (std::int64_t c = 0; c < before.shape[0]; ++c) {
    scale_channel(
        {.values = from + c * height * width, .region = {{0, height}, {0, width}}, .row_stride = width, .stride = 1},
        rows, columns, to + c * options_.height * options_.width);
  }
}

CenterCrop::CenterCrop(std::int64_t height, std::int64_t width)
    : FieldTransform("center crop", "image"), height_(height), width_(width) {
  check(height > 0 && width > 0, site(), "{} x {} pixels, expected at least 1 of each", height, width);
}

Field CenterCrop::changed(const Field& before) const {
  check(before.shape.rank() == 3 && before.shape[1] >= height_ && before.shape[2] >= width_, site(),
        "'image' is {}, expected (channels, height, width) of at least {} x {} pixels", before.shape.str(), height_,
        width_);
  Field after = before;
  after.shape = {before.shape[0], height_, width_};
  return after;
}

void CenterCrop::change(const SampleKey& /*key*/, const Field& before, const std::byte* in, std::byte* out) const {
  const auto begin = [](std::int64_t whole,
                        std::int64_t part) {  // a half is rounded to the even number, as torchvision
    return static_cast<std::int64_t>(std::nearbyint(static_cast<double>(whole - part) / 2));
  };
  const std::int64_t height = before.shape[1], width = before.shape[2];
  const std::int64_t top = begin(height, height_), left = begin(width, width_);
  const auto element = static_cast<std::int64_t>(size_of(before.dtype));
  for (std::int64_t c = 0; c < before.shape[0]; ++c) {
    for (std::int64_t y = 0; y < height_; ++y) {
      std::memcpy(out + (c * height_ + y) * width_ * element, in + ((c * height + y + top) * width + left) * element,
                  static_cast<std::size_t>(width_ * element));
    }
  }
}

RandomFlip::RandomFlip(FlipOptions options) : FieldTransform("random flip", "image"), options_(options) {
  for (const double p : {options.horizontal, options.vertical})
    check(p >= 0 && p <= 1, site(), "probability {}, expected 0 to 1", p);
}

Field RandomFlip::changed(const Field& before) const {
  check(before.shape.rank() == 3, site(), "'image' is {}, expected (channels, height, width)", before.shape.str());
  return before;
}

void RandomFlip::change(const SampleKey& key, const Field& before, const std::byte* in, std::byte* out) const {
  RandomStream random = key.random("random flip");
  const bool horizontal = random.uniform() < options_.horizontal, vertical = random.uniform() < options_.vertical;
  const std::int64_t height = before.shape[1], width = before.shape[2];
  const std::size_t element = size_of(before.dtype), row = static_cast<std::size_t>(width) * element;
  for (std::int64_t y = 0; y < before.shape[0] * height; ++y) {
    const std::int64_t channel = y / height, in_channel = y % height;
    const std::int64_t from_y = channel * height + (vertical ? height - 1 - in_channel : in_channel);
    const std::byte* from = in + static_cast<std::size_t>(from_y) * row;
    std::byte* to = out + static_cast<std::size_t>(y) * row;
    if (!horizontal) {
      std::memcpy(to, from, row);
      continue;
    }
    for (std::int64_t x = 0; x < width; ++x)
      std::memcpy(to + static_cast<std::size_t>(x) * element, from + static_cast<std::size_t>(width - 1 - x) * element,
                  element);
  }
}

}  // namespace lockstep::data

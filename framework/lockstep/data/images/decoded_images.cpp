#include "lockstep/data/images/decoded_images.h"

#include <algorithm>
#include <cstring>

#include "lockstep/core/error.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kImages = "images";

// The largest reduction after which the part still has as many pixels as are made of it.
double most_reduction(const ImagePart& part) {
  const auto shrink = [](const AxisPart& axis) { return (axis.end - axis.begin) / static_cast<double>(axis.total); };
  return std::min(shrink(part.rows), shrink(part.columns));
}

// Pixels to one grey channel, in place of the first: (row, column).
void to_grey(RgbPixels& pixels) {
  std::uint8_t* const values = pixels.values.data();
  for (std::size_t i = 0; i < pixels.values.size() / 3; ++i) {
    const std::uint8_t* rgb = values + 3 * i;
    values[i] = static_cast<std::uint8_t>((19595U * rgb[0] + 38470U * rgb[1] + 7471U * rgb[2] + 0x8000U) >> 16);
  }
}

}  // namespace

void decode_image(std::span<const std::byte> bytes, const std::string& place, const DecodeOptions& options,
                  RandomStream& random, std::uint8_t* out) {
  const std::unique_ptr<EncodedImage> image = open_image(bytes, place, options.limits);
  ImagePart part;
  try {
    part = choose_part(options.crop, image->height(), image->width(), random);
  } catch (const Error& error) {
    fail(kImages, "{}: {}", place, error.what());
  }
  const int reduction = image->reduction(options.reduce ? most_reduction(part) : 1);
  const ScaleAxis rows(part.rows, (image->height() + reduction - 1) / reduction, reduction);
  const ScaleAxis columns(part.columns, (image->width() + reduction - 1) / reduction, reduction);
  RgbPixels pixels = image->decode({rows.inputs(), columns.inputs()}, reduction);
  if (options.channels == 1) to_grey(pixels);
  const std::int64_t area = rows.outputs() * columns.outputs();
  for (int c = 0; c < options.channels; ++c) {
    scale_channel({.values = pixels.values.data() + c,
                   .region = pixels.region,
                   .row_stride = pixels.region.columns.size() * options.channels,
                   .stride = options.channels},
                  rows, columns, out + c * area);
  }
}

DecodedImages::DecodedImages(std::unique_ptr<const ImageFiles> files, DecodeOptions options)
    : files_(std::move(files)), options_(options) {
  check(files_ != nullptr, kImages, "the files are null, expected a source of image files");
  check_crop(options.crop);
  check(options.channels == 1 || options.channels == 3, kImages, "{} channels, expected 1 or 3", options.channels);
  fields_ = {{"image", {options.channels, options.crop.height, options.crop.width}, DType::U8},
             {"label", Shape{}, DType::I32}};
}

std::string DecodedImages::describe() const {
  return formatted("{}, decoded to {}", files_->describe(), fields_[0].shape.str());
}

void DecodedImages::read(std::int64_t index, std::span<std::byte* const> out) const {
  read_random(index, {.seed = 0, .epoch = 0, .index = index}, out);
}

void DecodedImages::read_random(std::int64_t index, const SampleKey& key, std::span<std::byte* const> out) const {
  check_index(index);
  const ImageFile file = files_->read(index);
  RandomStream random = key.random(kCropNumbers);
  decode_image(file.bytes, files_->place(index), options_, random, reinterpret_cast<std::uint8_t*>(out[0]));
  std::memcpy(out[1], &file.label, sizeof file.label);
}

}  // namespace lockstep::data

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
  pixels.values.resize(pixels.values.size() / 3);
}

// Decodes at least `region`, to `channels` channels.
RgbPixels decode_region(EncodedImage& image, const ImageRegion& region, int reduction, int channels) {
  RgbPixels pixels = image.decode(region, reduction);
  if (channels == 1) to_grey(pixels);
  return pixels;
}

ImagePart part_of_image(const DecodeOptions& options, std::int64_t height, std::int64_t width, const std::string& place,
                        RandomStream& random) {
  try {
    return choose_part(options.crop, height, width, random);
  } catch (const Error& error) {
    fail(kImages, "{}: {}", place, error.what());
  }
}

void scale_pixels(const RgbPixels& pixels, int channels, const ScaleAxis& rows, const ScaleAxis& columns,
                  std::uint8_t* out) {
  const std::int64_t area = rows.outputs() * columns.outputs();
  for (int c = 0; c < channels; ++c) {
    scale_channel({.values = pixels.values.data() + c,
                   .region = pixels.region,
                   .row_stride = pixels.region.columns.size() * channels,
                   .stride = channels},
                  rows, columns, out + c * area);
  }
}

}  // namespace

void decode_image(std::span<const std::byte> bytes, const std::string& place, const DecodeOptions& options,
                  RandomStream& random, std::uint8_t* out) {
  const std::unique_ptr<EncodedImage> image = open_image(bytes, place, options.limits);
  const ImagePart part = part_of_image(options, image->height(), image->width(), place, random);
  const int reduction = image->reduction(options.reduce ? most_reduction(part) : 1);
  const ScaleAxis rows(part.rows, (image->height() + reduction - 1) / reduction, reduction);
  const ScaleAxis columns(part.columns, (image->width() + reduction - 1) / reduction, reduction);
  const RgbPixels pixels = decode_region(*image, {rows.inputs(), columns.inputs()}, reduction, options.channels);
  scale_pixels(pixels, options.channels, rows, columns, out);
}

DecodedImages::DecodedImages(std::unique_ptr<const ImageFiles> files, DecodeOptions options)
    : files_(std::move(files)), options_(options) {
  check(files_ != nullptr, kImages, "the files are null, expected a source of image files");
  check_crop(options.crop);
  check(options.channels == 1 || options.channels == 3, kImages, "{} channels, expected 1 or 3", options.channels);
  fields_ = {{"image", {options.channels, options.crop.height, options.crop.width}, DType::U8},
             {"label", Shape{}, DType::I32}};
  if (options.cache_bytes > 0) cache_ = std::make_unique<PixelCache>(files_->size(), options.cache_bytes);
}

std::string DecodedImages::describe() const {
  return formatted("{}, decoded to {}", files_->describe(), fields_[0].shape.str());
}

void DecodedImages::read(std::int64_t index, std::span<std::byte* const> out) const {
  read_random(index, {.seed = 0, .epoch = 0, .index = index}, out);
}

void DecodedImages::read_random(std::int64_t index, const SampleKey& key, std::span<std::byte* const> out) const {
  check_index(index);
  RandomStream random = key.random(kCropNumbers);
  auto* const pixels = reinterpret_cast<std::uint8_t*>(out[0]);
  if (cache_ == nullptr) {
    const ImageFile file = files_->read(index);
    decode_image(file.bytes, files_->place(index), options_, random, pixels);
    std::memcpy(out[1], &file.label, sizeof file.label);
    return;
  }
  const std::shared_ptr<const WholeImage> image = whole_image(index);
  const std::int64_t height = image->pixels.region.rows.size(), width = image->pixels.region.columns.size();
  const ImagePart part = part_of_image(options_, height, width, files_->place(index), random);
  scale_pixels(image->pixels, options_.channels, ScaleAxis(part.rows, height), ScaleAxis(part.columns, width), pixels);
  std::memcpy(out[1], &image->label, sizeof image->label);
}

std::shared_ptr<const WholeImage> DecodedImages::whole_image(std::int64_t index) const {
  if (auto known = cache_->find(index)) return known;
  const ImageFile file = files_->read(index);
  const std::unique_ptr<EncodedImage> encoded = open_image(file.bytes, files_->place(index), options_.limits);
  const ImageRegion all{{0, encoded->height()}, {0, encoded->width()}};
  auto image = std::make_shared<WholeImage>(
      WholeImage{.pixels = decode_region(*encoded, all, 1, options_.channels), .label = file.label});
  cache_->keep(index, image);
  return image;
}

}  // namespace lockstep::data

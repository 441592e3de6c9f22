// Image files for tests: encoders on libjpeg and libpng, and a source of such files in memory.
#pragma once

#include <png.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "lockstep/core/random.h"
#include "lockstep/data/images/decoded_images.h"
#include "lockstep/data/images/libjpeg.h"

namespace lockstep::data {

// (row, column, channel)
struct TestImage {
  std::int64_t height = 0, width = 0, channels = 3;
  std::vector<std::uint8_t> values{};

  std::uint8_t at(std::int64_t y, std::int64_t x, std::int64_t c) const {
    return values[static_cast<std::size_t>((y * width + x) * channels + c)];
  }
};

inline TestImage noise_image(std::int64_t height, std::int64_t width, std::int64_t channels, std::uint64_t seed) {
  TestImage image{.height = height, .width = width, .channels = channels};
  RandomStream random(seed, 0);
  for (std::int64_t i = 0; i < height * width * channels; ++i)
    image.values.push_back(static_cast<std::uint8_t>(random.below(256)));
  return image;
}

// Slow waves with some noise: what JPEG keeps well, and yet no two pixels alike.
inline TestImage smooth_image(std::int64_t height, std::int64_t width, std::int64_t channels, std::uint64_t seed) {
  TestImage image{.height = height, .width = width, .channels = channels};
  RandomStream random(seed, 1);
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      for (std::int64_t c = 0; c < channels; ++c) {
        const std::int64_t wave = std::abs((3 * y + 2 * x + 40 * c) % 300 - 150);
        image.values.push_back(static_cast<std::uint8_t>(40 + wave + static_cast<std::int64_t>(random.below(12))));
      }
    }
  }
  return image;
}

struct JpegForm {
  int quality = 92;
  int horizontal = 2, vertical = 2;  // of the first component's samples: 2 x 2 is 4:2:0
  bool progressive = false;
  bool inks = false;  // four channels are YCCK in place of CMYK
};

inline std::vector<std::byte> encode_jpeg(const TestImage& image, const JpegForm& form = {}) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  info.image_width = static_cast<JDIMENSION>(image.width);
  info.image_height = static_cast<JDIMENSION>(image.height);
  info.input_components = static_cast<int>(image.channels);
  info.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : image.channels == 4 ? JCS_CMYK : JCS_RGB;
  jpeg_set_defaults(&info);
  if (form.inks) jpeg_set_colorspace(&info, JCS_YCCK);
  jpeg_set_quality(&info, form.quality, TRUE);
  if (image.channels == 3) {
    info.comp_info[0].h_samp_factor = form.horizontal;
    info.comp_info[0].v_samp_factor = form.vertical;
  }
  if (form.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  std::vector<std::uint8_t> values = image.values;
  for (std::int64_t y = 0; y < image.height; ++y) {
    JSAMPROW row = values.data() + y * image.width * image.channels;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  const auto* begin = reinterpret_cast<const std::byte*>(memory);
  std::vector<std::byte> bytes(begin, begin + size);
  jpeg_destroy_compress(&info);
  std::free(memory);
  return bytes;
}

struct PngForm {
  int color_type = PNG_COLOR_TYPE_RGB;
  int depth = 8;
  bool interlaced = false;
  std::vector<png_color> palette{};
};

// `rows`: the bytes of all rows as the form has them.
inline std::vector<std::byte> encode_png(std::int64_t height, std::int64_t width, std::vector<std::uint8_t> rows,
                                         const PngForm& form = {}) {
  std::vector<std::byte> bytes;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &bytes,
      [](png_structp p, png_bytep data, png_size_t count) {
        auto& out = *static_cast<std::vector<std::byte>*>(png_get_io_ptr(p));
        const auto* begin = reinterpret_cast<const std::byte*>(data);
        out.insert(out.end(), begin, begin + count);
      },
      [](png_structp) {});
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), form.depth,
               form.color_type, form.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (!form.palette.empty()) png_set_PLTE(png, info, form.palette.data(), static_cast<int>(form.palette.size()));
  png_write_info(png, info);
  std::vector<png_bytep> starts;
  const std::size_t row = rows.size() / static_cast<std::size_t>(height);
  for (std::size_t y = 0; y < static_cast<std::size_t>(height); ++y) starts.push_back(rows.data() + y * row);
  png_write_image(png, starts.data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return bytes;
}

inline std::vector<std::byte> encode_png(const TestImage& image) {
  return encode_png(image.height, image.width, image.values,
                    {.color_type = image.channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB});
}

// Files in memory, with labels 0, 1, 2, 0, ...
class MemoryFiles : public ImageFiles {
 public:
  explicit MemoryFiles(std::vector<std::vector<std::byte>> files) : files_(std::move(files)) {}

  std::int64_t size() const override { return std::ssize(files_); }
  const std::vector<std::string>& class_names() const override { return names_; }
  std::string describe() const override { return "memory"; }
  ImageFile read(std::int64_t index) const override {
    return {.bytes = files_[static_cast<std::size_t>(index)], .label = static_cast<std::int32_t>(index % 3)};
  }
  std::string place(std::int64_t index) const override { return "file" + std::to_string(index); }

 private:
  std::vector<std::vector<std::byte>> files_;
  std::vector<std::string> names_{"ant", "bee", "cat"};
};

}  // namespace lockstep::data

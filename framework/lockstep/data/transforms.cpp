#include "lockstep/data/transforms.h"

#include <algorithm>
#include <cstring>

#include "lockstep/core/error.h"
#include "lockstep/core/partition.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kImage = "image transform";

template <class From, class To>
void convert_elements(const std::byte* in, std::byte* out, std::size_t count) {
  const auto* from = reinterpret_cast<const From*>(in);
  std::transform(from, from + count, reinterpret_cast<To*>(out), [](From v) { return static_cast<To>(v); });
}

}  // namespace

// The random choices for one sample. Output pixel (y, x) is input pixel (y + top, x + left), mirrored before if `flip`.
struct ImageTransform::Choice {
  std::int64_t top = 0, left = 0;
  bool flip = false;
  Range cut_rows, cut_columns;
};

ImageTransform::ImageTransform(ImageOptions options) : options_(std::move(options)) {
  check(options_.crop_padding >= 0, kImage, "crop padding {}, expected at least 0", options_.crop_padding);
  check(options_.cutout >= 0, kImage, "cutout {}, expected at least 0", options_.cutout);
  check(options_.output == DType::F32 || options_.output == DType::F64, kImage, "output {}, expected f32 or f64",
        name_of(options_.output));
  for (float s : options_.stddev) check(s > 0, kImage, "standard deviation {}, expected more than 0", s);
}

ImageTransform ImageTransform::eval(ImageOptions options) {
  options.crop_padding = options.cutout = 0;
  options.flip = false;
  return ImageTransform(std::move(options));
}

std::vector<Field> ImageTransform::fields(const std::vector<Field>& in) const {
  Field image = in[find_field(kImage, in, "image")];
  check(image.dtype == DType::U8 && image.shape.rank() == 3, kImage,
        "'image' is {} {}, expected u8 (channels, height, width)", name_of(image.dtype), image.shape.str());
  for (const auto* values : {&options_.mean, &options_.stddev}) {
    check(values->empty() || static_cast<std::int64_t>(values->size()) == image.shape[0], kImage,
          "{} values of mean or standard deviation for {} channels", values->size(), image.shape[0]);
  }
  std::vector<Field> out = in;
  out[find_field(kImage, in, "image")].dtype = options_.output;
  return out;
}

ImageTransform::Choice ImageTransform::choose(const SampleKey& key, const Shape& shape) const {
  Choice choice;
  RandomStream random = key.random("image");
  if (options_.crop_padding > 0) {
    const auto places = static_cast<std::uint64_t>(2 * options_.crop_padding + 1);
    choice.top = static_cast<std::int64_t>(random.below(places)) - options_.crop_padding;
    choice.left = static_cast<std::int64_t>(random.below(places)) - options_.crop_padding;
  }
  if (options_.flip) choice.flip = random.below(2) == 1;
  if (options_.cutout > 0) {
    const auto cut = [&](std::int64_t length) {
      const auto centre = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(length)));
      const std::int64_t begin = centre - options_.cutout / 2;
      return Range{std::max<std::int64_t>(begin, 0), std::min(begin + options_.cutout, length)};
    };
    choice.cut_rows = cut(shape[1]);
    choice.cut_columns = cut(shape[2]);
  }
  return choice;
}

template <class T>
void ImageTransform::convert(const Choice& choice, const Shape& shape, const std::uint8_t* in, T* out) const {
  const std::int64_t height = shape[1], width = shape[2];
  // Columns of the output that come from the input; the other columns are black padding.
  const std::int64_t begin = std::clamp<std::int64_t>(-choice.left, 0, width);
  const std::int64_t end = std::clamp<std::int64_t>(width - choice.left, begin, width);
  for (std::int64_t c = 0; c < shape[0]; ++c) {
    const auto channel = static_cast<std::size_t>(c);
    const T mean = options_.mean.empty() ? T{0} : static_cast<T>(options_.mean[channel]);
    const T stddev = options_.stddev.empty() ? T{1} : static_cast<T>(options_.stddev[channel]);
    const T scale = T{1} / (T{255} * stddev), black = -mean / stddev;
    for (std::int64_t y = 0; y < height; ++y) {
      T* row = out + (c * height + y) * width;
      const std::int64_t from_y = y + choice.top;
      if (from_y < 0 || from_y >= height) {
        std::fill_n(row, width, black);
      } else {
        const std::uint8_t* from = in + (c * height + from_y) * width;
        std::fill(row, row + begin, black);
        for (std::int64_t x = begin; x < end; ++x) row[x] = static_cast<T>(from[x + choice.left]) * scale + black;
        std::fill(row + end, row + width, black);
        if (choice.flip) std::reverse(row, row + width);
      }
      if (y >= choice.cut_rows.begin && y < choice.cut_rows.end) {
        std::fill(row + choice.cut_columns.begin, row + choice.cut_columns.end, T{0});
      }
    }
  }
}

void ImageTransform::apply(const SampleKey& key, const std::vector<Field>& shape, std::span<const std::byte* const> in,
                           std::span<std::byte* const> out) const {
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].name != "image") {
      if (shape[i].bytes() > 0) std::memcpy(out[i], in[i], shape[i].bytes());
      continue;
    }
    if (shape[i].bytes() == 0) continue;
    const Choice choice = choose(key, shape[i].shape);
    const auto* pixels = reinterpret_cast<const std::uint8_t*>(in[i]);
    if (options_.output == DType::F32) {
      convert(choice, shape[i].shape, pixels, reinterpret_cast<float*>(out[i]));
    } else {
      convert(choice, shape[i].shape, pixels, reinterpret_cast<double*>(out[i]));
    }
  }
}

ConvertFloats::ConvertFloats(DType output) : output_(output) {
  check(output == DType::F32 || output == DType::F64, "float conversion", "output {}, expected f32 or f64",
        name_of(output));
}

std::vector<Field> ConvertFloats::fields(const std::vector<Field>& in) const {
  std::vector<Field> out = in;
  for (Field& field : out) {
    if (field.dtype == DType::F32 || field.dtype == DType::F64) field.dtype = output_;
  }
  return out;
}

void ConvertFloats::apply(const SampleKey&, const std::vector<Field>& shape, std::span<const std::byte* const> in,
                          std::span<std::byte* const> out) const {
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const auto count = static_cast<std::size_t>(shape[i].shape.elements());
    if (shape[i].dtype == DType::F32 && output_ == DType::F64) {
      convert_elements<float, double>(in[i], out[i], count);
    } else if (shape[i].dtype == DType::F64 && output_ == DType::F32) {
      convert_elements<double, float>(in[i], out[i], count);
    } else if (count > 0) {
      std::memcpy(out[i], in[i], shape[i].bytes());
    }
  }
}

}  // namespace lockstep::data

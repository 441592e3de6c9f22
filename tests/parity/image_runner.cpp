// Decodes, crops and changes an image for check_images.py, which compares the result with Pillow's and torchvision's:
//   image_runner FILE decode
//   image_runner FILE crop exact|whole|centre HEIGHT WIDTH SHORTER_SIDE
//   image_runner FILE part TOP LEFT ROWS COLUMNS HEIGHT WIDTH
//   image_runner FILE change NAME VALUE
//   image_runner FILE augment NUMBER STRENGTH NEGATIVE
// Standard output is a line "CHANNELS HEIGHT WIDTH" and the pixels in that order.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/data/augment/color_ops.h"
#include "lockstep/data/augment/rand_augment.h"
#include "lockstep/data/images/decoded_images.h"
#include "lockstep/io/read_file.h"

namespace {

using namespace lockstep;
using Bytes = std::vector<std::uint8_t>;

struct Result {
  std::int64_t height = 0, width = 0;
  Bytes pixels{};  // 3 channels
};

Result crop(std::span<const std::byte> bytes, const data::CropOptions& options) {
  Result result{.height = options.height, .width = options.width};
  result.pixels.resize(static_cast<std::size_t>(3 * options.height * options.width));
  RandomStream unused(0, 0);
  data::decode_image(bytes, "image", {.crop = options, .reduce = false}, unused, result.pixels.data());
  return result;
}

Result whole(std::span<const std::byte> bytes) {
  const auto image = data::open_image(bytes, "image");
  return crop(bytes, {.crop = data::Crop::Exact, .height = image->height(), .width = image->width()});
}

Result part(std::span<const std::byte> bytes, const std::vector<std::int64_t>& n) {
  const Result all = whole(bytes);
  const auto axis = [](std::int64_t begin, std::int64_t size, std::int64_t total) {
    return data::AxisPart{.begin = static_cast<double>(begin),
                          .end = static_cast<double>(begin + size),
                          .total = total,
                          .outputs = {0, total}};
  };
  const data::ScaleAxis rows(axis(n[0], n[2], n[4]), all.height), columns(axis(n[1], n[3], n[5]), all.width);
  Result result{.height = n[4], .width = n[5], .pixels = Bytes(static_cast<std::size_t>(3 * n[4] * n[5]))};
  for (std::int64_t c = 0; c < 3; ++c) {
    data::scale_channel({.values = all.pixels.data() + c * all.height * all.width,
                         .region = {{0, all.height}, {0, all.width}},
                         .row_stride = all.width},
                        rows, columns, result.pixels.data() + c * n[4] * n[5]);
  }
  return result;
}

void change(const data::ImageBytes& image, const std::string& name, double value) {
  const auto factor = static_cast<float>(value);
  const auto number = static_cast<int>(value);
  if (name == "brightness") return data::adjust_brightness(image, factor);
  if (name == "contrast") return data::adjust_contrast(image, factor);
  if (name == "saturation") return data::adjust_saturation(image, factor);
  if (name == "sharpness") return data::adjust_sharpness(image, factor);
  if (name == "hue") return data::adjust_hue(image, value);
  if (name == "posterize") return data::posterize(image, number);
  if (name == "solarize") return data::solarize(image, number);
  if (name == "autocontrast") return data::autocontrast(image);
  if (name == "equalize") return data::equalize(image);
  fail("image_runner", "'{}' is no change", name);
}

Result answer(const std::vector<std::string>& words) {
  io::FileReader reader(words.at(0), "image_runner");
  const std::vector<std::byte> bytes = reader.peek(0, reader.size());
  const std::string& what = words.at(1);
  std::vector<std::int64_t> numbers;
  for (std::size_t i = what == "crop" ? 3 : 2; i < words.size(); ++i) numbers.push_back(std::atoll(words[i].c_str()));
  if (what == "part") return part(bytes, numbers);
  if (what == "crop") {
    const std::map<std::string, data::Crop> crops{
        {"exact", data::Crop::Exact}, {"whole", data::Crop::Whole}, {"centre", data::Crop::Centre}};
    return crop(bytes, {.crop = crops.at(words.at(2)),
                        .height = numbers.at(0),
                        .width = numbers.at(1),
                        .shorter_side = numbers.at(2)});
  }
  Result result = whole(bytes);
  const data::ImageBytes image{result.pixels.data(), 3, result.height, result.width};
  if (what == "change") change(image, words.at(2), std::atof(words.at(3).c_str()));
  if (what == "augment")
    data::apply_augment(image, static_cast<data::AugmentOp>(numbers.at(0)), std::atof(words.at(3).c_str()),
                        numbers.at(2) != 0);
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Result result = answer({argv + 1, argv + argc});
    std::printf("3 %lld %lld\n", static_cast<long long>(result.height), static_cast<long long>(result.width));
    std::fwrite(result.pixels.data(), 1, result.pixels.size(), stdout);
    return std::fflush(stdout) == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "image_runner: %s\n", error.what());
    return 1;
  }
}

// Image files: the first byte chooses a part and a reduction, the rest is a JPEG or PNG.
#include "lockstep/data/images/encoded_image.h"
#include "tests/data/image_files.h"
#include "tests/fuzz/harness.h"

namespace lockstep::fuzz {
namespace {

Bytes with_choice(std::uint8_t choice, const std::vector<std::byte>& file) {
  Bytes bytes{choice};
  for (const std::byte b : file) bytes.push_back(std::to_integer<std::uint8_t>(b));
  return bytes;
}

}  // namespace

std::vector<Bytes> seeds() {
  const data::TestImage color = data::smooth_image(24, 37, 3, 1), grey = data::smooth_image(17, 9, 1, 2);
  const data::TestImage inks = data::noise_image(16, 16, 4, 3);
  return {with_choice(0, data::encode_jpeg(color)),
          with_choice(5, data::encode_jpeg(color, {.progressive = true})),
          with_choice(9, data::encode_jpeg(grey)),
          with_choice(2, data::encode_jpeg(inks)),
          with_choice(4, data::encode_png(color)),
          with_choice(0, data::encode_png(24, 37, color.values, {.interlaced = true})),
          with_choice(1, data::encode_png(grey)),
          with_choice(0, data::encode_png(
                             4, 8, Bytes(4, 0xA5),
                             {.color_type = PNG_COLOR_TYPE_PALETTE, .depth = 1, .palette = {{1, 2, 3}, {4, 5, 6}}}))};
}

}  // namespace lockstep::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  if (size == 0) return 0;
  const int choice = data[0];
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  fuzz::expect_answer([&] {
    const auto image = data::open_image(bytes, "fuzz", {.pixels = std::int64_t{1} << 20});
    const int reduction = image->reduction(1 << (choice & 3));
    const std::int64_t height = (image->height() + reduction - 1) / reduction;
    const std::int64_t width = (image->width() + reduction - 1) / reduction;
    const bool part = (choice & 4) != 0;
    image->decode({{part ? height / 2 : 0, height}, {part ? width / 3 : 0, part ? (width + 1) / 2 : width}}, reduction);
  });
  return 0;
}

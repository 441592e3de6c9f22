// JPEG and PNG: whole images against what was encoded, parts against the whole, and files that are damaged.
#include <algorithm>
#include <array>
#include <cmath>

#include "lockstep/data/images/encoded_image.h"
#include "tests/data/image_files.h"
#include "tests/data/support.h"

namespace lockstep::data {
namespace {

RgbPixels decoded(std::span<const std::byte> bytes, int reduction = 1) {
  const auto image = open_image(bytes, "test");
  const std::int64_t height = (image->height() + reduction - 1) / reduction;
  const std::int64_t width = (image->width() + reduction - 1) / reduction;
  RgbPixels pixels = image->decode({{0, height}, {0, width}}, reduction);
  EXPECT_EQ(pixels.region, (ImageRegion{{0, height}, {0, width}}));
  return pixels;
}

std::uint8_t at(const RgbPixels& pixels, std::int64_t y, std::int64_t x, std::int64_t c) {
  const ImageRegion& r = pixels.region;
  return pixels.values[static_cast<std::size_t>(((y - r.rows.begin) * r.columns.size() + x - r.columns.begin) * 3 + c)];
}

// `part` holds `region`, with the pixels of `whole` there.
void expect_part(const RgbPixels& part, const RgbPixels& whole, const ImageRegion& region, const std::string& what) {
  ASSERT_LE(part.region.rows.begin, region.rows.begin) << what;
  ASSERT_GE(part.region.rows.end, region.rows.end) << what;
  ASSERT_LE(part.region.columns.begin, region.columns.begin) << what;
  ASSERT_GE(part.region.columns.end, region.columns.end) << what;
  for (std::int64_t y = region.rows.begin; y < region.rows.end; ++y) {
    for (std::int64_t x = region.columns.begin; x < region.columns.end; ++x) {
      for (std::int64_t c = 0; c < 3; ++c) {
        ASSERT_EQ(at(part, y, x, c), at(whole, y, x, c)) << what << " at " << y << ", " << x << ", " << c;
      }
    }
  }
}

double mean_difference(const RgbPixels& pixels, const TestImage& image) {
  double sum = 0;
  for (std::size_t i = 0; i < pixels.values.size(); ++i) {
    const std::size_t pixel = i / 3, c = image.channels == 1 ? 0 : i % 3;
    sum += std::abs(int{pixels.values[i]} - int{image.values[pixel * static_cast<std::size_t>(image.channels) + c]});
  }
  return sum / static_cast<double>(pixels.values.size());
}

TEST(EncodedImage, JpegIsWhatWasEncodedUpToItsLoss) {
  for (const bool progressive : {false, true}) {
    const TestImage color = smooth_image(61, 83, 3, 1), grey = smooth_image(40, 33, 1, 2);
    const auto pixels =
        decoded(encode_jpeg(color, {.quality = 97, .horizontal = 1, .vertical = 1, .progressive = progressive}));
    EXPECT_LT(mean_difference(pixels, color), 3);
    const auto greys = decoded(encode_jpeg(grey, {.quality = 97, .progressive = progressive}));
    EXPECT_LT(mean_difference(greys, grey), 3);
    for (std::size_t i = 0; i < greys.values.size(); i += 3) {
      ASSERT_EQ(greys.values[i], greys.values[i + 1]);
      ASSERT_EQ(greys.values[i], greys.values[i + 2]);
    }
  }
}

TEST(EncodedImage, CmykBecomesRgb) {
  // 255 is no ink. Full black ink is black; no black ink leaves the other colours as they are.
  TestImage image{.height = 16, .width = 32, .channels = 4};
  for (int y = 0; y < 16; ++y) {
    for (int x = 0; x < 32; ++x) {
      const std::uint8_t black = x < 16 ? 255 : 100;
      for (const std::uint8_t value : {std::uint8_t{200}, std::uint8_t{120}, std::uint8_t{30}, black})
        image.values.push_back(value);
    }
  }
  for (const bool inks : {false, true}) {
    const auto pixels = decoded(encode_jpeg(image, {.quality = 100, .inks = inks}));
    for (int c = 0; c < 3; ++c) {
      const int value = std::array{200, 120, 30}[static_cast<std::size_t>(c)];
      EXPECT_NEAR(at(pixels, 4, 4, c), value, 3) << inks << " " << c;
      EXPECT_NEAR(at(pixels, 4, 28, c), value * 100 / 255, 3) << inks << " " << c;
    }
  }
}

TEST(EncodedImage, APartOfAJpegHasThePixelsOfTheWhole) {
  RandomStream random(5, 0);
  const std::vector<JpegForm> forms{{.horizontal = 1, .vertical = 1},
                                    {.horizontal = 2, .vertical = 1},
                                    {.horizontal = 1, .vertical = 2},
                                    {.horizontal = 2, .vertical = 2},
                                    {.horizontal = 2, .vertical = 2, .progressive = true}};
  for (std::size_t f = 0; f < forms.size() + 1; ++f) {
    const bool grey = f == forms.size();
    const TestImage image = noise_image(101, 147, grey ? 1 : 3, f);
    const std::vector<std::byte> bytes = encode_jpeg(image, grey ? JpegForm{} : forms[f]);
    for (const int reduction : {1, 2, 4, 8}) {
      const RgbPixels whole = decoded(bytes, reduction);
      const std::int64_t height = whole.region.rows.end, width = whole.region.columns.end;
      for (int i = 0; i < 40; ++i) {
        const auto range = [&](std::int64_t size) {
          const auto begin = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(size)));
          return Range{begin,
                       begin + 1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(size - begin)))};
        };
        const ImageRegion region{range(height), range(width)};
        const auto opened = open_image(bytes, "test");
        expect_part(opened->decode(region, reduction), whole, region,
                    formatted("form {}, 1/{}, rows {}-{}, columns {}-{}", f, reduction, region.rows.begin,
                              region.rows.end, region.columns.begin, region.columns.end));
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(EncodedImage, AReducedJpegIsTheMeanOfSquares) {
  const TestImage image = smooth_image(64, 96, 3, 9);
  const auto bytes = encode_jpeg(image, {.quality = 97, .horizontal = 1, .vertical = 1});
  for (const int reduction : {2, 4, 8}) {
    const RgbPixels pixels = decoded(bytes, reduction);
    double difference = 0;
    for (std::int64_t y = 0; y < 64 / reduction; ++y) {
      for (std::int64_t x = 0; x < 96 / reduction; ++x) {
        double mean = 0;
        for (int j = 0; j < reduction; ++j) {
          for (int i = 0; i < reduction; ++i) mean += image.at(y * reduction + j, x * reduction + i, 1);
        }
        difference += std::abs(mean / (reduction * reduction) - at(pixels, y, x, 1));
      }
    }
    EXPECT_LT(difference / (64 * 96 / (reduction * reduction)), 4) << reduction;
  }
}

TEST(EncodedImage, PngIsExact) {
  const TestImage color = noise_image(13, 21, 3, 1), grey = noise_image(9, 30, 1, 2);
  EXPECT_EQ(decoded(encode_png(color)).values, color.values);
  EXPECT_EQ(decoded(encode_png(13, 21, color.values, {.interlaced = true})).values, color.values);
  const RgbPixels greys = decoded(encode_png(grey));
  for (std::size_t i = 0; i < greys.values.size(); ++i) ASSERT_EQ(greys.values[i], grey.values[i / 3]);
}

TEST(EncodedImage, PngOfEveryFormBecomesRgb) {
  const TestImage color = noise_image(7, 8, 3, 3);
  std::vector<std::uint8_t> alpha, wide, grey_alpha, expected_grey;
  for (std::size_t i = 0; i < color.values.size(); ++i) {
    alpha.push_back(color.values[i]);
    if (i % 3 == 2) alpha.push_back(static_cast<std::uint8_t>(i));  // transparency, which is dropped
    wide.push_back(color.values[i]);
    wide.push_back(static_cast<std::uint8_t>(255 - i % 256));  // the lower 8 bits, which are dropped
  }
  EXPECT_EQ(decoded(encode_png(7, 8, alpha, {.color_type = PNG_COLOR_TYPE_RGB_ALPHA})).values, color.values);
  EXPECT_EQ(decoded(encode_png(7, 8, wide, {.depth = 16})).values, color.values);
  for (std::size_t i = 0; i < 56; ++i) {
    grey_alpha.push_back(color.values[i]);
    grey_alpha.push_back(7);
    for (int c = 0; c < 3; ++c) expected_grey.push_back(color.values[i]);
  }
  EXPECT_EQ(decoded(encode_png(7, 8, grey_alpha, {.color_type = PNG_COLOR_TYPE_GRAY_ALPHA})).values, expected_grey);
  const std::vector<std::uint8_t> bits(7, 0b10110001);
  const RgbPixels two = decoded(encode_png(7, 8, bits, {.color_type = PNG_COLOR_TYPE_GRAY, .depth = 1}));
  for (int x = 0; x < 8; ++x) EXPECT_EQ(at(two, 3, x, 2), (0b10110001 >> (7 - x) & 1) != 0 ? 255 : 0) << x;
  const std::vector<std::uint8_t> indices(56, 1);
  const RgbPixels painted =
      decoded(encode_png(7, 8, indices, {.color_type = PNG_COLOR_TYPE_PALETTE, .palette = {{1, 2, 3}, {40, 50, 60}}}));
  for (int c = 0; c < 3; ++c) EXPECT_EQ(at(painted, 6, 7, c), 40 + 10 * c);
}

TEST(EncodedImage, APartOfAPngHasThePixelsOfTheWhole) {
  const TestImage image = noise_image(20, 15, 3, 4);
  for (const bool interlaced : {false, true}) {
    const auto bytes = encode_png(20, 15, image.values, {.interlaced = interlaced});
    const RgbPixels whole = decoded(bytes);
    for (const ImageRegion& region :
         {ImageRegion{{0, 1}, {0, 1}}, ImageRegion{{7, 12}, {3, 15}}, ImageRegion{{19, 20}, {14, 15}}})
      expect_part(open_image(bytes, "test")->decode(region, 1), whole, region, interlaced ? "interlaced" : "plain");
  }
  EXPECT_EQ(open_image(encode_png(image), "test")->reduction(100), 1);
}

TEST(EncodedImage, ReductionsArePowersOfTwo) {
  const auto bytes = encode_jpeg(smooth_image(16, 16, 3, 1));
  const auto image = open_image(bytes, "test");
  for (const auto& [most, expected] : std::vector<std::pair<double, int>>{
           {0.3, 1}, {1, 1}, {1.99, 1}, {2, 2}, {3.9, 2}, {4, 4}, {7.9, 4}, {8, 8}, {1000, 8}})
    EXPECT_EQ(image->reduction(most), expected) << most;
}

TEST(EncodedImage, WhatIsNoImageIsNamed) {
  expect_error([] { open_image({}, "a/empty.jpg"); }, {"a/empty.jpg", "0 bytes"});
  const std::vector<std::byte> text(20, std::byte{'x'});
  expect_error([&] { open_image(text, "a/text.png"); }, {"a/text.png", "78 78 78 78", "ff d8 ff"});
  expect_error([&] { open_image(std::span(text).first(1), "one"); }, {"one", "78"});
  const auto large = encode_png(smooth_image(100, 100, 3, 1));
  expect_error([&] { open_image(large, "large", {.pixels = 9999}); }, {"large", "100 rows and 100 columns", "9999"});
  const auto jpeg = encode_jpeg(smooth_image(100, 100, 3, 1));
  expect_error([&] { open_image(jpeg, "large", {.pixels = 9999}); }, {"large", "100 rows and 100 columns", "9999"});
  expect_error([&] { open_image(jpeg, "part")->decode({{0, 101}, {0, 5}}, 1); }, {"part", "[0, 101)"});
  expect_error([&] { open_image(jpeg, "part")->decode({{0, 0}, {0, 5}}, 1); }, {"part", "[0, 0)"});
}

// At every length, and also where only the first row is wanted: a file that is cut never passes for a whole one.
TEST(EncodedImage, ATruncatedFileIsAnError) {
  const TestImage image = smooth_image(48, 40, 3, 6);
  for (const auto& bytes : {encode_jpeg(image), encode_jpeg(image, {.progressive = true}), encode_png(image)}) {
    for (std::size_t length = 1; length < bytes.size(); length += length < 64 ? 1 : 37) {
      const std::span<const std::byte> cut(bytes.data(), length);
      expect_error([&] { open_image(cut, "cut")->decode({{0, 1}, {0, 1}}, 1); }, {"cut"});
    }
  }
}

TEST(EncodedImage, DamagedDataIsAnError) {
  const TestImage image = noise_image(64, 64, 3, 6);
  auto png = encode_png(image);
  png[png.size() / 2] ^= std::byte{0x40};
  expect_error([&] { decoded(png); }, {"[png]", "test"});
  auto jpeg = encode_jpeg(image);
  // An end marker within the data: the rest of the image is missing.
  jpeg[jpeg.size() / 2] = std::byte{0xFF};
  jpeg[jpeg.size() / 2 + 1] = std::byte{0xD9};
  expect_error([&] { decoded(jpeg); }, {"[jpeg]", "test"});
}

}  // namespace
}  // namespace lockstep::data

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lockstep/core/tensor.h"
#include "lockstep/data/transforms.h"
#include "tests/data/support.h"

namespace lockstep::data {
namespace {

const std::vector<Field> kTransformFields{{"image", {2, 5, 6}, DType::U8}, {"label", Shape{}, DType::I32}};

// Pixels 1 to 60, all different, so an output tells where each came from; 0 is padding.
template <class T = float>
std::vector<T> apply(const ImageTransform& transform, const SampleKey& key) {
  std::vector<std::uint8_t> pixels(60);
  std::iota(pixels.begin(), pixels.end(), std::uint8_t{1});
  const std::int32_t label = 4;
  std::vector<T> image(60);
  std::int32_t out_label = 0;
  const std::byte* in[] = {reinterpret_cast<const std::byte*>(pixels.data()),
                           reinterpret_cast<const std::byte*>(&label)};
  std::byte* out[] = {reinterpret_cast<std::byte*>(image.data()), reinterpret_cast<std::byte*>(&out_label)};
  transform.apply(key, kTransformFields, in, out);
  EXPECT_EQ(out_label, 4);
  return image;
}

// The pixel a normalised value came from, for mean 0 and deviation 1.
int pixel(float value) { return static_cast<int>(std::lround(value * 255)); }

TEST(ImageTransform, Normalises) {
  const ImageOptions options{.mean = {0.5f, 0.25f}, .stddev = {0.2f, 0.1f}};
  const auto image = apply(ImageTransform(options), {});
  ImageOptions exact = options;
  exact.output = DType::F64;
  const auto image64 = apply<double>(ImageTransform(exact), {});
  for (std::size_t i = 0; i < 60; ++i) {
    const double mean = i < 30 ? 0.5 : 0.25, stddev = i < 30 ? double{0.2f} : double{0.1f};
    const double expected = (static_cast<double>(i + 1) / 255 - mean) / stddev;
    EXPECT_NEAR(image[i], expected, 1e-6);
    EXPECT_NEAR(image64[i], expected, 1e-14);
  }
  EXPECT_EQ(ImageTransform(exact).fields(kTransformFields)[0].dtype, DType::F64);
  EXPECT_EQ(ImageTransform(exact).fields(kTransformFields)[1], kTransformFields[1]);
}

TEST(ImageTransform, CropsAreShiftsWithBlackAroundAndAllOccur) {
  const ImageTransform transform({.crop_padding = 2});
  std::vector<int> seen(25);
  for (std::int64_t index = 0; index < 500; ++index) {
    const auto image = apply(transform, {.seed = 1, .epoch = 0, .index = index});
    int matches = 0;
    for (int top = -2; top <= 2; ++top) {
      for (int left = -2; left <= 2; ++left) {
        bool same = true;
        for (int c = 0; c < 2; ++c) {
          for (int y = 0; y < 5; ++y) {
            for (int x = 0; x < 6; ++x) {
              const int fy = y + top, fx = x + left;
              const bool inside = fy >= 0 && fy < 5 && fx >= 0 && fx < 6;
              const auto at =
                  (static_cast<std::size_t>(c) * 5 + static_cast<std::size_t>(y)) * 6 + static_cast<std::size_t>(x);
              const int expected = inside ? 1 + (c * 5 + fy) * 6 + fx : 0;
              same = same && pixel(image[at]) == expected;
            }
          }
        }
        if (same) ++matches, ++seen[static_cast<std::size_t>(top + 2) * 5 + static_cast<std::size_t>(left + 2)];
      }
    }
    EXPECT_EQ(matches, 1);
  }
  EXPECT_GT(std::ranges::min(seen), 0);
}

TEST(ImageTransform, PaddingIsBlackBeforeNormalising) {
  const ImageTransform transform({.crop_padding = 40, .mean = {0.5f, 0.5f}, .stddev = {0.25f, 0.25f}});
  const auto image = apply(transform, {.seed = 1, .epoch = 0, .index = 0});  // mostly far outside
  EXPECT_EQ(std::ranges::min(image), -2.0f);
}

TEST(ImageTransform, FlipsHalfOfTheImages) {
  const ImageTransform transform({.flip = true});
  int flipped = 0;
  for (std::int64_t index = 0; index < 1000; ++index) {
    const auto image = apply(transform, {.seed = 7, .epoch = 3, .index = index});
    const bool mirrored = pixel(image[0]) == 6;
    flipped += mirrored;
    for (int i = 0; i < 60; ++i) {
      const int x = i % 6, row = i - x;
      EXPECT_EQ(pixel(image[static_cast<std::size_t>(i)]), 1 + row + (mirrored ? 5 - x : x));
    }
  }
  EXPECT_NEAR(flipped, 500, 80);
}

TEST(ImageTransform, CutoutClearsOneRectangleInEveryChannel) {
  const ImageTransform transform({.cutout = 3});
  for (std::int64_t index = 0; index < 200; ++index) {
    const auto image = apply(transform, {.seed = 7, .epoch = 0, .index = index});
    std::vector<int> rows, columns;
    for (int i = 0; i < 30; ++i) {
      const bool cut = image[static_cast<std::size_t>(i)] == 0;
      EXPECT_EQ(cut, image[static_cast<std::size_t>(i + 30)] == 0);
      if (cut) rows.push_back(i / 6), columns.push_back(i % 6);
    }
    const auto [top, bottom] = std::ranges::minmax(rows);
    const auto [left, right] = std::ranges::minmax(columns);
    EXPECT_EQ(static_cast<int>(rows.size()), (bottom - top + 1) * (right - left + 1));
    EXPECT_LE(bottom - top + 1, 3);
    EXPECT_GE(bottom - top + 1, 2);  // centres are inside: at most one row is cut off
    EXPECT_LE(right - left + 1, 3);
  }
}

TEST(ImageTransform, DependsOnSeedEpochAndIndexAlone) {
  const ImageTransform transform({.crop_padding = 2, .flip = true, .cutout = 2}),
      other = transform;  // NOLINT: a copy is meant
  int changed = 0;
  for (std::int64_t index = 0; index < 20; ++index) {
    const SampleKey key{.seed = 1, .epoch = 2, .index = index};
    EXPECT_EQ(apply(transform, key), apply(other, key));
    changed += apply(transform, key) != apply(transform, {.seed = 2, .epoch = 2, .index = index});
    changed += apply(transform, key) != apply(transform, {.seed = 1, .epoch = 3, .index = index});
  }
  EXPECT_GT(changed, 36);
}

TEST(ImageTransform, EvaluationHasNoRandomness) {
  const auto transform = ImageTransform::eval({.crop_padding = 2, .flip = true, .cutout = 2});
  for (std::int64_t index = 0; index < 50; ++index) {
    const auto image = apply(transform, {.seed = 1, .epoch = 0, .index = index});
    for (int i = 0; i < 60; ++i) EXPECT_EQ(pixel(image[static_cast<std::size_t>(i)]), i + 1);
  }
}

TEST(ImageTransform, BadOptionsAreNamed) {
  expect_error([] { ImageTransform({.crop_padding = -1}); }, {"crop padding -1"});
  expect_error([] { ImageTransform({.stddev = {0.0f}}); }, {"standard deviation 0"});
  expect_error([] { ImageTransform({.output = DType::I32}); }, {"i32", "f32 or f64"});
  expect_error([] { (void)ImageTransform({.mean = {0, 0, 0}}).fields(kTransformFields); }, {"3 values", "2 channels"});
  expect_error([] { (void)ImageTransform({}).fields({{"x", {3}, DType::U8}}); }, {"no field 'image'", "x"});
  expect_error([] { (void)ImageTransform({}).fields({{"image", {3}, DType::U8}}); }, {"(3)", "(channels"});
}

TEST(ConvertFloats, ConvertsFloatingFieldsAlone) {
  const std::vector<Field> fields{{"a", {2}, DType::F32}, {"b", {1}, DType::F64}, {"c", {1}, DType::I64}};
  const ConvertFloats transform(DType::F64);
  const auto out_fields = transform.fields(fields);
  EXPECT_EQ(out_fields[0].dtype, DType::F64);
  EXPECT_EQ(out_fields[1].dtype, DType::F64);
  EXPECT_EQ(out_fields[2].dtype, DType::I64);
  const float a[] = {1.5f, -2.25f};
  const double b = 0.1;
  const std::int64_t c = 1ll << 60;
  double a_out[2], b_out;
  std::int64_t c_out;
  const std::byte* in[] = {reinterpret_cast<const std::byte*>(a), reinterpret_cast<const std::byte*>(&b),
                           reinterpret_cast<const std::byte*>(&c)};
  std::byte* out[] = {reinterpret_cast<std::byte*>(a_out), reinterpret_cast<std::byte*>(&b_out),
                      reinterpret_cast<std::byte*>(&c_out)};
  transform.apply({}, fields, in, out);
  EXPECT_EQ(a_out[0], 1.5);
  EXPECT_EQ(a_out[1], -2.25);
  EXPECT_EQ(b_out, 0.1);
  EXPECT_EQ(c_out, c);
  expect_error([] { const ConvertFloats wrong(DType::U8); }, {"u8"});
}

}  // namespace
}  // namespace lockstep::data

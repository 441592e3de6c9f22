// Scaling images: against a reference that is written straight from the definition, in f64.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "lockstep/core/random.h"
#include "lockstep/data/array_datasets.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/resize.h"
#include "tests/data/support.h"

namespace lockstep::data {
namespace {

template <class T>
constexpr DType kType = DType::F32;
template <>
constexpr DType kType<double> = DType::F64;
template <>
constexpr DType kType<std::uint8_t> = DType::U8;

template <class T>
std::vector<T> scaled(const ResizeImages& resize, const Shape& shape, const std::vector<T>& pixels) {
  const std::vector<Field> fields{{"label", Shape{}, DType::I32}, {"image", shape, kType<T>}};
  const std::vector<Field> after = resize.fields(fields);
  EXPECT_EQ(after[0], fields[0]);
  EXPECT_EQ(after[1].dtype, kType<T>);
  std::vector<T> image(static_cast<std::size_t>(after[1].shape.elements()));
  const std::int32_t label = 4;
  std::int32_t out_label = 0;
  const std::byte* in[] = {reinterpret_cast<const std::byte*>(&label),
                           reinterpret_cast<const std::byte*>(pixels.data())};
  std::byte* out[] = {reinterpret_cast<std::byte*>(&out_label), reinterpret_cast<std::byte*>(image.data())};
  resize.apply({}, fields, in, out);
  EXPECT_EQ(out_label, 4);
  return image;
}

// The value of one output pixel: the mean of all input pixels, weighted by a triangle around the output's centre.
double reference(const std::vector<double>& in, const Shape& from, const Shape& to, std::int64_t c, std::int64_t y,
                 std::int64_t x) {
  const auto weight = [](std::int64_t input, std::int64_t output, std::int64_t inputs, std::int64_t outputs) {
    const double scale = static_cast<double>(inputs) / static_cast<double>(outputs);
    const double distance = std::abs((static_cast<double>(output) + 0.5) * scale - (static_cast<double>(input) + 0.5));
    return std::max(0.0, 1 - distance / std::max(1.0, scale));
  };
  double sum = 0, weights = 0;
  for (std::int64_t j = 0; j < from[1]; ++j) {
    for (std::int64_t i = 0; i < from[2]; ++i) {
      const double w = weight(j, y, from[1], to[1]) * weight(i, x, from[2], to[2]);
      sum += w * in[static_cast<std::size_t>((c * from[1] + j) * from[2] + i)];
      weights += w;
    }
  }
  return sum / weights;
}

// Linear interpolation between the two nearest pixels, as F.interpolate(align_corners=False) is defined for enlarging.
double interpolated(const std::vector<double>& line, std::int64_t output, std::int64_t outputs) {
  const auto inputs = static_cast<std::int64_t>(line.size());
  const double at = std::max(
      0.0, (static_cast<double>(output) + 0.5) * static_cast<double>(inputs) / static_cast<double>(outputs) - 0.5);
  const auto low = static_cast<std::int64_t>(at), high = std::min(low + 1, inputs - 1);
  const double part = at - static_cast<double>(low);
  return (1 - part) * line[static_cast<std::size_t>(low)] + part * line[static_cast<std::size_t>(high)];
}

const std::vector<std::pair<Shape, std::int64_t>> kCases{{{3, 32, 32}, 224}, {{1, 28, 28}, 64}, {{2, 5, 8}, 13},
                                                         {{2, 8, 5}, 13},    {{1, 20, 14}, 6},  {{1, 6, 31}, 5},
                                                         {{2, 7, 7}, 7},     {{1, 1, 1}, 4},    {{1, 9, 9}, 1}};

TEST(ResizeImages, IsTheDefinitionInEveryType) {
  for (const auto& [shape, side] : kCases) {
    const ResizeImages resize(shape, side);
    const Shape to = resized(shape, side);
    RandomStream random(7, static_cast<std::uint64_t>(side));
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(shape.elements()));
    for (auto& b : bytes) b = static_cast<std::uint8_t>(random.below(256));
    const std::vector<double> wide(bytes.begin(), bytes.end());
    const std::vector<float> single(bytes.begin(), bytes.end());
    const auto from_wide = scaled(resize, shape, wide);
    const auto from_single = scaled(resize, shape, single);
    const auto from_bytes = scaled(resize, shape, bytes);
    ASSERT_EQ(from_wide.size(), static_cast<std::size_t>(to.elements()));
    const std::int64_t step = shape == Shape{3, 32, 32} ? 11 : 1;  // of the large ones some
    for (std::int64_t i = 0; i < to.elements(); i += step) {
      const std::int64_t c = i / (to[1] * to[2]), y = i / to[2] % to[1], x = i % to[2];
      const double expected = reference(wide, shape, to, c, y, x);
      const auto at = static_cast<std::size_t>(i);
      EXPECT_NEAR(from_wide[at], expected, 1e-11) << shape.str() << " to " << side << " at " << i;
      EXPECT_NEAR(from_single[at], expected, 1e-4) << shape.str() << " to " << side << " at " << i;
      EXPECT_NEAR(from_bytes[at], expected, 0.5 + 1e-4) << shape.str() << " to " << side << " at " << i;
    }
  }
}

TEST(ResizeImages, EnlargesByLinearInterpolation) {
  const std::vector<double> line{3, 200, 17, 90, 255};
  const ResizeImages resize({1, 5, 5}, 35);
  std::vector<double> image;
  for (int y = 0; y < 5; ++y) image.insert(image.end(), line.begin(), line.end());
  const auto result = scaled(resize, {1, 5, 5}, image);
  for (std::int64_t x = 0; x < 35; ++x)
    EXPECT_NEAR(result[static_cast<std::size_t>(17 * 35 + x)], interpolated(line, x, 35), 1e-12) << x;
}

TEST(ResizeImages, OfTheSameSizeChangesNothing) {
  std::vector<float> image(2 * 6 * 7);
  std::iota(image.begin(), image.end(), 0.25F);
  EXPECT_EQ(scaled(ResizeImages({2, 6, 7}, 6), {2, 6, 7}, image), image);
  EXPECT_EQ(scaled(ResizeImages({1, 3, 3}, 224), {1, 3, 3}, std::vector<std::uint8_t>(9, 201)),
            std::vector<std::uint8_t>(224 * 224, 201))
      << "one colour stays that colour";
}

TEST(ResizeImages, KeepsTheRatioOfTheSides) {
  EXPECT_EQ(resized({3, 32, 32}, 224), (Shape{3, 224, 224}));
  EXPECT_EQ(resized({3, 480, 640}, 224), (Shape{3, 224, 298}));
  EXPECT_EQ(resized({1, 640, 480}, 224), (Shape{1, 298, 224}));
}

TEST(ResizeImages, RefusesWhatItCannotScale) {
  EXPECT_THROW(resized({32, 32}, 8), Error);
  EXPECT_THROW(resized({3, 0, 32}, 8), Error);
  EXPECT_THROW(resized({3, 32, 32}, 0), Error);
  const ResizeImages resize({1, 4, 4}, 8);
  EXPECT_THROW(resize.fields({{"image", {1, 4, 5}, DType::U8}}), Error);
  EXPECT_THROW(resize.fields({{"image", {1, 4, 4}, DType::I32}}), Error);
  EXPECT_THROW(resize.fields({{"picture", {1, 4, 4}, DType::U8}}), Error);
}

// As a session has it: random crop, flip and normalisation, then the scaling.
TEST(ResizeImages, FollowsTheOtherTransformsInAPipeline) {
  const Shape shape{1, 4, 4};
  const ImageTransform normalise({.crop_padding = 1, .flip = true, .mean = {0.5F}, .stddev = {0.25F}});
  const auto resize = std::make_shared<ResizeImages>(shape, 12);
  const Pipeline pipeline({{"image", shape, DType::U8}},
                          {std::make_shared<ImageTransform>(
                               ImageOptions{.crop_padding = 1, .flip = true, .mean = {0.5F}, .stddev = {0.25F}}),
                           resize});
  EXPECT_EQ(pipeline.fields()[0].shape, (Shape{1, 12, 12}));
  EXPECT_EQ(pipeline.fields()[0].dtype, DType::F32);
  std::vector<std::uint8_t> pixels(16);
  std::iota(pixels.begin(), pixels.end(), std::uint8_t{100});
  for (std::int64_t index = 0; index < 8; ++index) {
    const SampleKey key{.seed = 3, .epoch = 1, .index = index};
    std::vector<Tensor> batch;
    batch.emplace_back(Shape{1, 1, 12, 12}, DType::F32);
    SampleMaker maker(pipeline);
    std::memcpy(maker.source(batch, 0)[0], pixels.data(), pixels.size());
    maker.transform(key);
    std::vector<float> small(16);
    const std::byte* in[] = {reinterpret_cast<const std::byte*>(pixels.data())};
    std::byte* out[] = {reinterpret_cast<std::byte*>(small.data())};
    normalise.apply(key, {{"image", shape, DType::U8}}, in, out);
    std::vector<float> expected(144);
    const std::byte* small_in[] = {reinterpret_cast<const std::byte*>(small.data())};
    std::byte* large_out[] = {reinterpret_cast<std::byte*>(expected.data())};
    resize->apply(key, {{"image", shape, DType::F32}}, small_in, large_out);
    EXPECT_TRUE(std::ranges::equal(expected, std::span(batch[0].data<float>().data(), 144)));
  }
}

}  // namespace
}  // namespace lockstep::data

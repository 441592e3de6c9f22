// Augmentations of images: against plain references, with their random choices over many samples.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "lockstep/data/augment/color_jitter.h"
#include "lockstep/data/augment/color_ops.h"
#include "lockstep/data/augment/gaussian_noise.h"
#include "lockstep/data/augment/geometry.h"
#include "lockstep/data/augment/rand_augment.h"
#include "lockstep/data/augment/random_erasing.h"
#include "tests/data/support.h"

namespace lockstep::data {
namespace {

using Pixels = std::vector<std::uint8_t>;

Pixels noise(std::int64_t count, std::uint64_t seed) {
  RandomStream random(seed, 8);
  Pixels pixels(static_cast<std::size_t>(count));
  for (auto& p : pixels) p = static_cast<std::uint8_t>(random.below(256));
  return pixels;
}

// Applies a transform to one image with a label beside it.
template <class T>
std::vector<T> apply(const Transform& transform, const Field& image, const std::vector<T>& values,
                     const SampleKey& key) {
  const std::vector<Field> before{{"label", Shape{}, DType::I32}, image};
  const std::vector<Field> after = transform.fields(before);
  EXPECT_EQ(after[0], before[0]);
  std::vector<T> result(static_cast<std::size_t>(after[1].shape.elements()));
  const std::int32_t label = 6;
  std::int32_t out_label = 0;
  const std::byte* in[] = {reinterpret_cast<const std::byte*>(&label),
                           reinterpret_cast<const std::byte*>(values.data())};
  std::byte* out[] = {reinterpret_cast<std::byte*>(&out_label), reinterpret_cast<std::byte*>(result.data())};
  transform.apply(key, before, in, out);
  EXPECT_EQ(out_label, 6);
  return result;
}

SampleKey key_of(std::int64_t index) { return {.seed = 5, .epoch = 1, .index = index}; }

// The transform gives equal results for equal keys, and not always the same one.
template <class T>
void expect_by_key(const Transform& transform, const Field& field, const std::vector<T>& values) {
  const auto first = apply(transform, field, values, key_of(0));
  EXPECT_EQ(apply(transform, field, values, key_of(0)), first);
  int different = 0;
  for (std::int64_t i = 1; i < 20; ++i) different += apply(transform, field, values, key_of(i)) != first;
  EXPECT_GT(different, 5);
  SampleKey later = key_of(0);
  int by_epoch = 0;
  for (later.epoch = 2; later.epoch < 20; ++later.epoch) by_epoch += apply(transform, field, values, later) != first;
  EXPECT_GT(by_epoch, 5);
}

TEST(CenterCrop, TakesTheMiddle) {
  const Field field{"image", {2, 5, 8}, DType::F32};
  std::vector<float> values(80);
  std::iota(values.begin(), values.end(), 0.0F);
  const auto out = apply(CenterCrop(2, 3), field, values, {});
  // (5 - 2) / 2 = 1.5 and (8 - 3) / 2 = 2.5 are both rounded to 2.
  EXPECT_EQ(out, (std::vector<float>{18, 19, 20, 26, 27, 28, 58, 59, 60, 66, 67, 68}));
  EXPECT_EQ(apply(CenterCrop(5, 8), field, values, {}), values);
  EXPECT_THROW(CenterCrop(6, 3).fields({field}), Error);
  EXPECT_THROW(CenterCrop(0, 3), Error);
}

TEST(RandomFlip, MirrorsAxesByTheirProbabilities) {
  const Field field{"image", {2, 3, 4}, DType::I64};
  std::vector<std::int64_t> values(24);
  std::iota(values.begin(), values.end(), 0);
  int counts[2][2] = {};
  const RandomFlip flip({.horizontal = 0.5, .vertical = 0.25});
  for (std::int64_t i = 0; i < 400; ++i) {
    const auto out = apply(flip, field, values, key_of(i));
    const bool vertical = out[0] == 8 || out[0] == 11, horizontal = out[0] == 3 || out[0] == 11;
    for (std::int64_t c = 0; c < 2; ++c) {
      for (std::int64_t y = 0; y < 3; ++y) {
        for (std::int64_t x = 0; x < 4; ++x) {
          const std::int64_t from = (c * 3 + (vertical ? 2 - y : y)) * 4 + (horizontal ? 3 - x : x);
          ASSERT_EQ(out[static_cast<std::size_t>((c * 3 + y) * 4 + x)], from);
        }
      }
    }
    ++counts[vertical][horizontal];
  }
  EXPECT_NEAR(counts[0][1] + counts[1][1], 200, 45);
  EXPECT_NEAR(counts[1][0] + counts[1][1], 100, 40);
  EXPECT_THROW(RandomFlip({.horizontal = 1.1}), Error);
  EXPECT_THROW(flip.fields({{"image", {4}, DType::U8}}), Error);
}

// Brightness, contrast, saturation: on the line from a plain image through the image.
TEST(ColorOps, BlendWithAPlainImage) {
  const Pixels before = noise(3 * 30, 2);
  std::vector<double> grey(30);
  double mean = 0;
  for (std::size_t i = 0; i < 30; ++i) {
    grey[i] = std::floor((19595.0 * before[i] + 38470.0 * before[30 + i] + 7471.0 * before[60 + i] + 32768) / 65536);
    mean += grey[i] / 30;
  }
  mean = std::floor(mean + 0.5);
  for (const float factor : {0.0F, 0.3F, 1.0F, 1.7F}) {
    Pixels bright = before, contrast = before, saturated = before;
    adjust_brightness({bright.data(), 3, 5, 6}, factor);
    adjust_contrast({contrast.data(), 3, 5, 6}, factor);
    adjust_saturation({saturated.data(), 3, 5, 6}, factor);
    for (std::size_t i = 0; i < 90; ++i) {
      const auto expected = [&](double plain) {
        return std::clamp(plain + double{factor} * (before[i] - plain), 0.0, 255.0);
      };
      EXPECT_NEAR(bright[i], expected(0) - 0.5, 0.501);
      EXPECT_NEAR(contrast[i], expected(mean) - 0.5, 0.501);
      EXPECT_NEAR(saturated[i], expected(grey[i % 30]) - 0.5, 0.501);
    }
    if (factor == 1.0F) {
      EXPECT_EQ(bright, before);
      EXPECT_EQ(contrast, before);
      EXPECT_EQ(saturated, before);
    }
  }
}

TEST(ColorOps, HueTurnsInTheColourCircle) {
  Pixels image{255, 0, 10, 100, 0, 255, 10, 50, 0, 0, 10, 50};  // red, green, grey, a pale red
  const Pixels before = image;
  adjust_hue({image.data(), 3, 1, 4}, 1.0 / 3);
  EXPECT_EQ(image, (Pixels{0, 0, 10, 50, 255, 0, 10, 100, 0, 255, 10, 50})) << "red to green to blue";
  adjust_hue({image.data(), 3, 1, 4}, -1.0 / 3);
  EXPECT_EQ(image, before);
  const Pixels colors = noise(3 * 500, 3);
  for (const double shift : {-0.5, -0.2, 0.0, 0.05, 0.5}) {
    Pixels turned = colors;
    adjust_hue({turned.data(), 3, 1, 500}, shift);
    if (shift == 0) {
      EXPECT_EQ(turned, colors);
    }
    for (std::size_t i = 0; i < 500; ++i) {  // the largest and the smallest channel stay
      const auto a = std::minmax({colors[i], colors[500 + i], colors[1000 + i]});
      const auto b = std::minmax({turned[i], turned[500 + i], turned[1000 + i]});
      ASSERT_EQ(a, b);
    }
  }
}

TEST(ColorOps, SharpnessBlendsWithTheSmoothedImage) {
  const Pixels before = noise(7 * 9, 4);
  for (const float factor : {0.0F, 0.5F, 1.9F}) {
    Pixels image = before;
    adjust_sharpness({image.data(), 1, 7, 9}, factor);
    for (int y = 0; y < 7; ++y) {
      for (int x = 0; x < 9; ++x) {
        const auto at = static_cast<std::size_t>(y * 9 + x);
        if (y == 0 || y == 6 || x == 0 || x == 8) {
          EXPECT_EQ(image[at], before[at]);
          continue;
        }
        double sum = 4.0 * before[at];
        for (int j = -1; j <= 1; ++j) {
          for (int i = -1; i <= 1; ++i) sum += before[static_cast<std::size_t>((y + j) * 9 + x + i)];
        }
        const double smooth = std::floor(sum / 13 + 0.5);
        EXPECT_NEAR(image[at], std::clamp(smooth + double{factor} * (before[at] - smooth), 0.0, 255.0) - 0.5, 0.501);
      }
    }
  }
}

TEST(ColorOps, LookUpTables) {
  Pixels image{0, 77, 128, 255};
  posterize({image.data(), 1, 2, 2}, 2);
  EXPECT_EQ(image, (Pixels{0, 64, 128, 192}));
  image = {0, 77, 128, 255};
  solarize({image.data(), 1, 2, 2}, 128);
  EXPECT_EQ(image, (Pixels{0, 77, 127, 0}));
  image = {50, 60, 80, 101};
  autocontrast({image.data(), 1, 2, 2});
  EXPECT_EQ(image, (Pixels{0, 50, 150, 255}));
  Pixels flat(300, 9);
  autocontrast({flat.data(), 3, 10, 10});
  equalize({flat.data(), 3, 10, 10});
  EXPECT_EQ(flat, Pixels(300, 9));
  // 1024 pixels of 4 values become values whose distance is that of their shares.
  Pixels four(1024);
  for (std::size_t i = 0; i < four.size(); ++i) four[i] = static_cast<std::uint8_t>(100 + i % 4);
  equalize({four.data(), 1, 32, 32});
  std::set<int> values(four.begin(), four.end());
  EXPECT_EQ(values, (std::set<int>{0, 85, 171, 255}));
}

TEST(ColorOps, AffineTransformsTakeTheNearestPixel) {
  const Pixels before = noise(2 * 20, 5);
  Pixels moved = before;
  transform_affine({moved.data(), 2, 4, 5}, {.c = 2, .f = -1});
  for (int c = 0; c < 2; ++c) {
    for (int y = 0; y < 4; ++y) {
      for (int x = 0; x < 5; ++x) {
        const bool inside = x + 2 < 5 && y - 1 >= 0;
        const auto at = static_cast<std::size_t>((c * 4 + y) * 5 + x);
        EXPECT_EQ(moved[at], inside ? before[at - 3] : 0);
      }
    }
  }
  const Pixels square = noise(25, 6);
  Pixels turned = square;
  for (int i = 0; i < 4; ++i) {
    apply_augment({turned.data(), 1, 5, 5}, AugmentOp::Rotate, 3, false);  // 90 degrees
    if (i > 0) continue;
    EXPECT_EQ(turned[0], square[4]) << "counterclockwise: the right upper corner comes to the left";
  }
  EXPECT_EQ(turned, square);
}

TEST(ColorJitter, StaysWithinItsFactorsAndDependsOnTheKey) {
  const Field field{"image", {3, 4, 5}, DType::U8};
  const Pixels before(60, 100);
  std::set<int> seen;
  const ColorJitter brightness({.brightness = 0.4});
  for (std::int64_t i = 0; i < 300; ++i) {
    const Pixels out = apply(brightness, field, before, key_of(i));
    EXPECT_EQ(out, Pixels(60, out[0]));
    seen.insert(out[0]);
  }
  EXPECT_GE(*seen.begin(), 59);
  EXPECT_LE(*seen.begin(), 66);
  EXPECT_LE(*seen.rbegin(), 140);
  EXPECT_GE(*seen.rbegin(), 133);
  const Pixels image = noise(60, 7);
  expect_by_key(ColorJitter({.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1}), field, image);
  EXPECT_EQ(apply(ColorJitter({}), field, image, key_of(3)), image);
  EXPECT_THROW(ColorJitter({.brightness = -1}), Error);
  EXPECT_THROW(ColorJitter({.hue = 0.6}), Error);
  EXPECT_THROW(brightness.fields({{"image", {3, 4, 5}, DType::F32}}), Error);
  EXPECT_THROW(brightness.fields({{"image", {2, 4, 5}, DType::U8}}), Error);
}

TEST(RandAugment, AppliesEveryOperation) {
  const Field field{"image", {3, 12, 10}, DType::U8};
  const Pixels image = noise(360, 8);
  expect_by_key(RandAugment({}), field, image);
  EXPECT_EQ(apply(RandAugment({.operations = 0}), field, image, key_of(1)), image);
  // With one operation, each sample is one of the 14 in one of two directions, and all occur.
  std::set<Pixels> possible, seen;
  for (int op = 0; op < kAugmentOps; ++op) {
    for (const bool negative : {false, true}) {
      Pixels out = image;
      apply_augment({out.data(), 3, 12, 10}, static_cast<AugmentOp>(op), 9.0 / 30, negative);
      possible.insert(out);
    }
  }
  const RandAugment one({.operations = 1});
  for (std::int64_t i = 0; i < 500; ++i) {
    const Pixels out = apply(one, field, image, key_of(i));
    EXPECT_TRUE(possible.contains(out));
    seen.insert(out);
  }
  EXPECT_EQ(seen, possible);
  EXPECT_GT(possible.size(), 20U);
  EXPECT_THROW(RandAugment({.magnitude = 31}), Error);
  EXPECT_THROW(RandAugment({.bins = 1}), Error);
}

TEST(RandomErasing, ErasesOneRectangle) {
  const Field field{"image", {2, 30, 40}, DType::F32};
  const std::vector<float> before(2400, 5.0F);
  const RandomErasing erasing(
      {.probability = 0.7, .min_area = 0.1, .max_area = 0.3, .min_ratio = 0.5, .max_ratio = 2, .value = -1});
  int erased = 0;
  for (std::int64_t i = 0; i < 300; ++i) {
    const auto out = apply(erasing, field, before, key_of(i));
    std::int64_t top = 30, bottom = 0, left = 40, right = 0, count = 0;
    for (std::int64_t p = 0; p < 1200; ++p) {
      const float value = out[static_cast<std::size_t>(p)];
      ASSERT_EQ(value, out[static_cast<std::size_t>(p + 1200)]);
      if (value == 5) continue;
      ASSERT_EQ(value, -1);
      ++count;
      top = std::min(top, p / 40), bottom = std::max(bottom, p / 40 + 1);
      left = std::min(left, p % 40), right = std::max(right, p % 40 + 1);
    }
    if (count == 0) continue;
    ++erased;
    ASSERT_EQ(count, (bottom - top) * (right - left));
    EXPECT_NEAR(static_cast<double>(count) / 1200, 0.2, 0.13);
  }
  EXPECT_NEAR(erased, 210, 45);
  const std::vector<double> wide(2400, 5.0);
  const Field field64{"image", {2, 30, 40}, DType::F64};
  const auto noisy = apply(RandomErasing({.probability = 1, .noise = true}), field64, wide, key_of(1));
  std::set<double> values(noisy.begin(), noisy.end());
  EXPECT_GT(values.size(), 20U);
  EXPECT_EQ(apply(RandomErasing({.probability = 0}), field64, wide, key_of(1)), wide);
  EXPECT_THROW(RandomErasing({.max_area = 1.5}), Error);
  EXPECT_THROW(erasing.fields({{"image", {3, 4, 5}, DType::U8}}), Error);
}

TEST(GaussianNoise, HasItsMeanAndDeviation) {
  const Field field{"x", {5000}, DType::F64};
  const std::vector<double> before(5000, 2.0);
  const GaussianNoise transform({.field = "x", .mean = 1, .stddev = 0.5});
  const auto out = apply(transform, field, before, key_of(0));
  double mean = 0, variance = 0;
  for (const double v : out) mean += v / 5000;
  for (const double v : out) variance += (v - mean) * (v - mean) / 5000;
  EXPECT_NEAR(mean, 3, 0.03);
  EXPECT_NEAR(std::sqrt(variance), 0.5, 0.03);
  expect_by_key(transform, field, before);
  EXPECT_THROW(GaussianNoise({.stddev = -1}), Error);
  EXPECT_THROW(transform.fields({{"y", {5}, DType::F64}}), Error);
  EXPECT_THROW(transform.fields({{"x", {5}, DType::I32}}), Error);
}

}  // namespace
}  // namespace lockstep::data

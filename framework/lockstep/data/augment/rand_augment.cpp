#include "lockstep/data/augment/rand_augment.h"

#include <cmath>
#include <cstring>
#include <numbers>

#include "lockstep/core/error.h"
#include "lockstep/core/math.h"

namespace lockstep::data {
namespace {

// Turns the image around its middle, counterclockwise.
Affine rotation(const ImageBytes& image, double degrees) {
  const double angle = degrees * std::numbers::pi / 180, cos = math::cos(angle), sin = math::sin(angle);
  const double x = static_cast<double>(image.width) / 2, y = static_cast<double>(image.height) / 2;
  return {.a = cos, .b = -sin, .c = x - cos * x + sin * y, .d = sin, .e = cos, .f = y - sin * x - cos * y};
}

}  // namespace

void apply_augment(const ImageBytes& image, AugmentOp op, double strength, bool negative) {
  const double sign = negative ? -1 : 1;
  const auto factor = static_cast<float>(1 + sign * 0.9 * strength);
  const auto shift = [&](std::int64_t side) {
    return sign * std::floor(150.0 / 331 * static_cast<double>(side) * strength);
  };
  switch (op) {
    case AugmentOp::Identity:
      return;
    case AugmentOp::ShearX:
      return transform_affine(image, {.b = sign * 0.3 * strength});
    case AugmentOp::ShearY:
      return transform_affine(image, {.d = sign * 0.3 * strength});
    case AugmentOp::TranslateX:
      return transform_affine(image, {.c = shift(image.width)});
    case AugmentOp::TranslateY:
      return transform_affine(image, {.f = shift(image.height)});
    case AugmentOp::Rotate:
      return transform_affine(image, rotation(image, sign * 30 * strength));
    case AugmentOp::Brightness:
      return adjust_brightness(image, factor);
    case AugmentOp::Color:
      return adjust_saturation(image, factor);
    case AugmentOp::Contrast:
      return adjust_contrast(image, factor);
    case AugmentOp::Sharpness:
      return adjust_sharpness(image, factor);
    case AugmentOp::Posterize:
      return posterize(image, 8 - static_cast<int>(std::nearbyint(4 * strength)));
    case AugmentOp::Solarize:
      return solarize(image, static_cast<int>(std::ceil(255 * (1 - strength))));
    case AugmentOp::AutoContrast:
      return autocontrast(image);
    case AugmentOp::Equalize:
      return equalize(image);
  }
}

RandAugment::RandAugment(RandAugmentOptions options) : FieldTransform("rand augment", "image"), options_(options) {
  check(options.operations >= 0, site(), "{} operations, expected at least 0", options.operations);
  check(options.bins > 1, site(), "{} bins, expected at least 2", options.bins);
  check(options.magnitude >= 0 && options.magnitude < options.bins, site(), "magnitude {}, expected 0 to {}",
        options.magnitude, options.bins - 1);
}

Field RandAugment::changed(const Field& before) const {
  expect_bytes(before);
  return before;
}

void RandAugment::change(const SampleKey& key, const Field& before, const std::byte* in, std::byte* out) const {
  std::memcpy(out, in, before.bytes());
  const ImageBytes image{.values = reinterpret_cast<std::uint8_t*>(out),
                         .channels = before.shape[0],
                         .height = before.shape[1],
                         .width = before.shape[2]};
  RandomStream random = key.random("rand augment");
  const double strength = static_cast<double>(options_.magnitude) / (options_.bins - 1);
  for (int i = 0; i < options_.operations; ++i) {
    const auto op = static_cast<AugmentOp>(random.below(kAugmentOps));
    const bool negative = random.below(2) == 1;
    apply_augment(image, op, strength, negative);
  }
}

}  // namespace lockstep::data

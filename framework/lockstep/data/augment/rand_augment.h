// RandAugment (Cubuk et al., "RandAugment: practical automated data augmentation with a reduced search space" (2020)),
// with torchvision's list of operations and magnitudes. Immutable: any thread may call it.
#pragma once

#include <cstdint>
#include <string_view>

#include "lockstep/data/augment/color_ops.h"
#include "lockstep/data/augment/field_transform.h"

namespace lockstep::data {

enum class AugmentOp : std::uint8_t {
  Identity,
  ShearX,
  ShearY,
  TranslateX,
  TranslateY,
  Rotate,
  Brightness,
  Color,
  Contrast,
  Sharpness,
  Posterize,
  Solarize,
  AutoContrast,
  Equalize,
};
inline constexpr int kAugmentOps = 14;

struct RandAugmentOptions {
  int operations = 2;  // applied one after the other, each drawn from the 14
  int magnitude = 9;   // 0 to bins - 1
  int bins = 31;
};

// Applies one operation at `strength` = magnitude / (bins - 1), 0 to 1: shears by up to 0.3, shifts by up to 150/331 of
// the side, turns by up to 30 degrees, colour factors of 1 +- up to 0.9, 8 to 4 bits, thresholds of 255 to 0.
// `negative` is the direction of an operation that has one. Pixels from outside are black.
void apply_augment(const ImageBytes& image, AugmentOp op, double strength, bool negative);

// Changes the field "image", U8 (1 or 3 channels, height, width).
class RandAugment : public FieldTransform {
 public:
  explicit RandAugment(RandAugmentOptions options);  // throws Error for numbers outside their ranges

 private:
  Field changed(const Field& before) const override;
  void change(const SampleKey& key, const Field& before, const std::byte* in, std::byte* out) const override;

  RandAugmentOptions options_;
};

}  // namespace lockstep::data

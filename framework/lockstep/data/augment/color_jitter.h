// torchvision's ColorJitter: changes brightness, contrast, saturation and hue by random factors in a random order.
// Immutable: any thread may call it.
#pragma once

#include "lockstep/data/augment/field_transform.h"

namespace lockstep::data {

struct ColorJitterOptions {
  // The factor is uniform in [max(0, 1 - value), 1 + value]; 0: no change.
  double brightness = 0, contrast = 0, saturation = 0;
  double hue = 0;  // the hue turns by a uniform part of the circle in [-hue, hue], up to 0.5
};

// Changes the field "image", U8 (1 or 3 channels, height, width); see color_ops.h for the formulas.
class ColorJitter : public FieldTransform {
 public:
  explicit ColorJitter(ColorJitterOptions options);  // throws Error for negative values, and a hue above 0.5

 private:
  Field changed(const Field& before) const override;
  void change(const SampleKey& key, const Field& before, const std::byte* in, std::byte* out) const override;

  ColorJitterOptions options_;
};

}  // namespace lockstep::data

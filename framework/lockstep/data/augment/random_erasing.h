// Random erasing (Zhong et al., "Random erasing data augmentation" (2020)), as torchvision's RandomErasing. Immutable:
// any thread may call it.
#pragma once

#include "lockstep/data/augment/field_transform.h"

namespace lockstep::data {

struct RandomErasingOptions {
  double probability = 0.5;
  double min_area = 0.02, max_area = 0.33;  // parts of the image's area
  double min_ratio = 0.3, max_ratio = 3.3;  // height to width
  double value = 0;                         // of the erased elements, after normalising
  bool noise = false;                       // in place of `value` normal numbers of mean 0 and variance 1
};

// Erases one rectangle of the field "image", F32 or F64 (channels, height, width): after ImageTransform.
class RandomErasing : public FieldTransform {
 public:
  explicit RandomErasing(RandomErasingOptions options);  // throws Error for numbers outside their ranges

 private:
  Field changed(const Field& before) const override;
  void change(const SampleKey& key, const Field& before, const std::byte* in, std::byte* out) const override;
  template <class T>
  void erase(RandomStream& random, const Shape& shape, T* image) const;

  RandomErasingOptions options_;
};

}  // namespace lockstep::data

// Crops and flips of images of one size, by (seed, epoch, sample). Images of different sizes are cropped while they are
// decoded (images/decoded_images.h). Immutable: any thread may call them.
#pragma once

#include <cstdint>

#include "lockstep/data/augment/field_transform.h"
#include "lockstep/data/images/crop.h"

namespace lockstep::data {

// Makes the field "image", U8 (channels, height, width), an image of another size: any Crop, with the pixels and the
// random choices of DecodedImages without reduction. torchvision's Resize, CenterCrop and RandomResizedCrop of PIL
// images.
class CropImage : public FieldTransform {
 public:
  explicit CropImage(CropOptions options);  // throws Error as check_crop() does

 private:
  Field changed(const Field& before) const override;
  void change(const SampleKey& key, const Field& before, const std::byte* in, std::byte* out) const override;

  CropOptions options_;
};

// The middle of the field "image", of any type: torchvision's CenterCrop. Without padding: the image must be as large.
class CenterCrop : public FieldTransform {
 public:
  CenterCrop(std::int64_t height, std::int64_t width);  // throws Error for a size below 1

 private:
  Field changed(const Field& before) const override;
  void change(const SampleKey& key, const Field& before, const std::byte* in, std::byte* out) const override;

  std::int64_t height_, width_;
};

struct FlipOptions {
  double horizontal = 0.5, vertical = 0;  // probabilities of left to right, and of top to bottom
};

// Mirrors the field "image", (channels, height, width) of any type. torchvision's RandomHorizontalFlip and
// RandomVerticalFlip. Fields of physics, whose vector components change too: field_symmetry.h.
class RandomFlip : public FieldTransform {
 public:
  explicit RandomFlip(FlipOptions options);  // throws Error for probabilities outside [0, 1]

 private:
  Field changed(const Field& before) const override;
  void change(const SampleKey& key, const Field& before, const std::byte* in, std::byte* out) const override;

  FlipOptions options_;
};

}  // namespace lockstep::data

// Transforms of samples between data set and batch. Random choices depend on the sample's key (seed, epoch, index)
// alone, so augmentation is the same at any number of ranks and loader threads. Transforms are immutable: any thread
// may call them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lockstep/data/dataset.h"

namespace lockstep::data {

class Transform {
 public:
  virtual ~Transform() = default;
  // Returns the fields after the transform, given the fields before it; throws Error for fields that it does not
  // accept. Called once, at the start.
  virtual std::vector<Field> fields(const std::vector<Field>& in) const = 0;
  // Transforms one sample: reads in[i], of the type and shape of `shape`[i], and writes out[i]; they do not overlap.
  virtual void apply(const SampleKey& key, const std::vector<Field>& shape, std::span<const std::byte* const> in,
                     std::span<std::byte* const> out) const = 0;
};
using Transforms = std::vector<std::shared_ptr<const Transform>>;

struct ImageOptions {
  std::int64_t crop_padding = 0;        // width in pixels of the black border before a random crop of the image's size
  bool flip = false;                    // mirror left to right with probability 1/2
  std::vector<float> mean{}, stddev{};  // per channel, of pixels in [0, 1]; empty: 0 and 1
  std::int64_t cutout = 0;  // side in pixels of a square set to 0 after normalising (DeVries and Taylor 2017); 0: none
  DType output = DType::F32;  // or F64
};

// Converts "image", U8 (channels, height, width), to (pixel / 255 - mean) / stddev of dtype `output`; copies other
// fields.
class ImageTransform : public Transform {
 public:
  // Throws Error for negative sizes, a standard deviation that is not positive, or an output type other than F32 or
  // F64.
  explicit ImageTransform(ImageOptions options);
  // Returns the transform without random changes, for evaluation.
  static ImageTransform eval(ImageOptions options);

  std::vector<Field> fields(const std::vector<Field>& in) const override;
  void apply(const SampleKey& key, const std::vector<Field>& shape, std::span<const std::byte* const> in,
             std::span<std::byte* const> out) const override;

 private:
  struct Choice;
  Choice choose(const SampleKey& key, const Shape& shape) const;
  template <class T>
  void convert(const Choice& choice, const Shape& shape, const std::uint8_t* in, T* out) const;

  ImageOptions options_;
};

// Converts every F32 and F64 field to `output`, F32 or F64; copies other fields.
class ConvertFloats : public Transform {
 public:
  explicit ConvertFloats(DType output);
  std::vector<Field> fields(const std::vector<Field>& in) const override;
  void apply(const SampleKey& key, const std::vector<Field>& shape, std::span<const std::byte* const> in,
             std::span<std::byte* const> out) const override;

 private:
  DType output_;
};

}  // namespace lockstep::data

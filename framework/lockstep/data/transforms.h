// Changes to a sample between data set and batch. Random choices come from the sample's key (seed, epoch, index)
// alone, so augmentation is the same at any number of ranks and loader threads. Transforms are immutable: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "lockstep/core/random.h"
#include "lockstep/data/dataset.h"

namespace lockstep::data {

struct SampleKey {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0, index = 0;

  // Random numbers for one use of a sample; `use` keeps several transforms apart.
  RandomStream random(std::string_view use) const {
    return {mix(mix(seed, hash_name(use)), static_cast<std::uint64_t>(epoch)), static_cast<std::uint64_t>(index)};
  }
};

class Transform {
 public:
  virtual ~Transform() = default;
  // The fields after the transform, given those before it. Throws Error for fields it cannot take. Called once, at the
  // start.
  virtual std::vector<Field> fields(const std::vector<Field>& in) const = 0;
  // One sample, of the `shape` given by the fields: reads in[i], writes out[i]; they do not overlap.
  virtual void apply(const SampleKey& key, const std::vector<Field>& shape, std::span<const std::byte* const> in,
                     std::span<std::byte* const> out) const = 0;
};
using Transforms = std::vector<std::shared_ptr<const Transform>>;

struct ImageOptions {
  std::int64_t crop_padding = 0;        // pixels of black around the image before a random crop of its size
  bool flip = false;                    // left to right, for one image in two
  std::vector<float> mean{}, stddev{};  // per channel, of pixels in [0, 1]; empty: 0 and 1
  std::int64_t cutout = 0;    // side of a square set to 0 after normalising (DeVries and Taylor 2017); 0: none
  DType output = DType::F32;  // or F64
};

// "image", U8 (channels, height, width), to (pixel / 255 - mean) / stddev of dtype `output`. Other fields pass.
class ImageTransform : public Transform {
 public:
  explicit ImageTransform(ImageOptions options);
  // The same without randomness: for evaluation.
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

// Every F32 or F64 field to one dtype of the two. Other fields pass.
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

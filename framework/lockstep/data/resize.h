// Scales images to another size on the way from the data set to the batch, by bilinear interpolation with pixel centres
// at half positions (align_corners = false) and, where an image shrinks, a triangle filter as wide as its pixels become
// (antialias = true): the result of torchvision.transforms.Resize for tensors, up to rounding.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/data/transforms.h"

namespace lockstep::data {

// Returns the shape (channels, height, width) of an image whose shorter side is scaled to `shorter_side`; the longer
// one follows, rounded down. Throws Error for an image without pixels, and for a side below 1.
Shape resized(const Shape& image, std::int64_t shorter_side);

// Scales the field "image", U8, F32 or F64, of one shape; copies other fields. U8 is computed in f32 and rounded to the
// nearest number, a half to the even one. Immutable: any thread may call it.
class ResizeImages : public Transform {
 public:
  // `image`: the shape of the images, (channels, height, width). Throws Error as resized() does.
  ResizeImages(const Shape& image, std::int64_t shorter_side);

  std::vector<Field> fields(const std::vector<Field>& in) const override;
  void apply(const SampleKey& key, const std::vector<Field>& shape, std::span<const std::byte* const> in,
             std::span<std::byte* const> out) const override;

 private:
  // Output i of an axis is the sum over k of weight[first_weight[i] + k] * input[first[i] + k], with k below
  // first_weight[i + 1] - first_weight[i].
  template <class T>
  struct Axis {
    Axis(std::int64_t in, std::int64_t out);
    std::vector<std::int64_t> first, first_weight{0};
    std::vector<T> weight;
  };
  template <class T>
  struct Axes {
    Axis<T> rows, columns;
  };
  template <class T, class W>
  void scale(const Axes<W>& axes, const T* in, T* out) const;

  Shape from_, to_;
  Axes<float> single_;
  Axes<double> double_;
};

}  // namespace lockstep::data

// Scales 8-bit images, or parts of them, by bilinear interpolation with a triangle filter as wide as the pixels become
// where an image shrinks: the bits of Pillow's Image.resize(BILINEAR, box=...), which torchvision's transforms of
// PIL images call. Weights are whole numbers of 2^-22, so the result is the same on every processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lockstep/core/partition.h"
#include "lockstep/data/images/encoded_image.h"

namespace lockstep::data {

// One axis of a part of an image that is scaled: the interval [begin, end) of the image becomes `total` pixels, of
// which `outputs` are computed.
struct AxisPart {
  double begin = 0, end = 0;
  std::int64_t total = 0;
  Range outputs{};
};
struct ImagePart {
  AxisPart rows{}, columns{};
};

// The weights of one axis. Immutable.
class ScaleAxis {
 public:
  // The image is reduced by `reduction`, whose pixels then are 1/reduction as wide: positions of `part` are those of
  // the whole image, `size` is the number of pixels of the reduced one. Pixels outside the interval are not read.
  ScaleAxis(const AxisPart& part, std::int64_t size, int reduction = 1);

  std::int64_t outputs() const { return static_cast<std::int64_t>(first_.size()); }
  Range inputs() const { return inputs_; }  // pixels of the reduced image that the outputs need
  // Output i is the sum over k of weights(i)[k] * input[first(i) + k], in units of 2^-22, for k below taps(i).
  std::int64_t first(std::int64_t i) const { return first_[static_cast<std::size_t>(i)]; }
  std::int64_t taps(std::int64_t i) const {
    return weight_begin_[static_cast<std::size_t>(i) + 1] - weight_begin_[static_cast<std::size_t>(i)];
  }
  const std::int32_t* weights(std::int64_t i) const {
    return weights_.data() + weight_begin_[static_cast<std::size_t>(i)];
  }

 private:
  Range inputs_{};
  std::vector<std::int64_t> first_, weight_begin_{0};
  std::vector<std::int32_t> weights_;
};

// One channel of an image in memory: pixel (row, column) of the region is at values[row * row_stride + column *
// stride], counted from the region's first row and column.
struct ChannelView {
  const std::uint8_t* values = nullptr;
  ImageRegion region{};
  std::int64_t row_stride = 0, stride = 1;
};

// Writes rows.outputs() x columns.outputs() pixels, dense, to `out`. The region must hold the inputs of both axes.
void scale_channel(const ChannelView& in, const ScaleAxis& rows, const ScaleAxis& columns, std::uint8_t* out);

}  // namespace lockstep::data

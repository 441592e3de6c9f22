// One linear map per spatial axis on images [planes, in_d, in_h, in_w, block], where a plane is one sample's channel,
// or its block of 8 or 16 channels: enlarging, shrinking, padding, and their gradients, which have transposed maps. An
// output element is a sum over its taps, planes first, then rows, then columns; bf16 is summed in f32. The padding of a
// block stays 0. Missing outer axes have the identity of one element.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "lockstep/ops/axis_map.h"

namespace lockstep::kernels::generic {

// The taps of all outputs of an axis, one after the other; C is the type of the sums.
template <class C>
struct AxisTaps {
  explicit AxisTaps(const AxisMap& map);
  std::int64_t in = 0, out = 0;
  std::vector<std::int64_t> begin;  // by output, and one more
  std::vector<std::int64_t> from;
  std::vector<C> weight;
};

// T is float or double with sums of its own type, or BFloat16 with sums in float.
template <class T, class C>
class Resampler {
 public:
  // `maps` has one to three axes, the outermost first.
  Resampler(const std::vector<AxisMap>& maps, std::int64_t planes, std::int64_t block);
  // Overwrites y, which does not overlap x. On OpenMP threads, by output rows; nothing allocates.
  void run(const T* x, T* y) const;

 private:
  template <int Block>
  void run_blocks(const T* x, T* y) const;
  // One row of outputs: of this plane, depth and height.
  template <int Block>
  void row(const T* image, std::int64_t d, std::int64_t h, T* y) const;

  std::int64_t planes_, block_;
  AxisTaps<C> depth_, height_, width_;
};

}  // namespace lockstep::kernels::generic

// Layers without parameters that move elements, with PyTorch's names: Flatten, PixelShuffle, and padding for values of
// one, two and three spatial axes. Each throws Error with its module path where the shapes do not fit.
#pragma once

#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/nn/child.h"
#include "lockstep/ops/pad.h"
#include "lockstep/ops/permute.h"
#include "lockstep/ops/reshape.h"

namespace lockstep::nn {

// Joins the axes from `start` to `end` into one.
class Flatten : public Module {
 public:
  explicit Flatten(int start = 1, int end = -1) : start_(start), end_(end) {}
  Value operator()(Value x) const { return flatten(x, start_, end_); }

 private:
  int start_, end_;
};

// (..., C factor^2, H, W) -> (..., C, H factor, W factor).
class PixelShuffle : public Module {
 public:
  explicit PixelShuffle(std::int64_t factor) : factor_(factor) {}
  Value operator()(Value x) const { return pixel_shuffle(x, factor_); }

 private:
  std::int64_t factor_;
};

// (..., C, H factor, W factor) -> (..., C factor^2, H, W).
class PixelUnshuffle : public Module {
 public:
  explicit PixelUnshuffle(std::int64_t factor) : factor_(factor) {}
  Value operator()(Value x) const { return pixel_unshuffle(x, factor_); }

 private:
  std::int64_t factor_;
};

// Pads the last `kAxes` axes on both sides: by one number everywhere, or by {left, right, top, bottom, ...}, where the
// last axis comes first.
template <int kAxes, PadMode kMode>
class PaddingLayer : public Module {
 public:
  explicit PaddingLayer(std::int64_t everywhere, double value = 0)
      : PaddingLayer(std::vector<std::int64_t>(2 * kAxes, everywhere), value) {}
  explicit PaddingLayer(std::vector<std::int64_t> padding, double value = 0)
      : padding_(std::move(padding)), value_(value) {
    check(padding_.size() == 2 * kAxes, "pad", "padding of {} axes has {} numbers, expected {}", kAxes, padding_.size(),
          2 * kAxes);
  }
  Value operator()(Value x) const { return pad(x, padding_, kMode, value_); }

 private:
  std::vector<std::int64_t> padding_;
  double value_;  // for PadMode::Constant
};

using ZeroPad1d = PaddingLayer<1, PadMode::Constant>;
using ZeroPad2d = PaddingLayer<2, PadMode::Constant>;
using ZeroPad3d = PaddingLayer<3, PadMode::Constant>;
using ConstantPad1d = PaddingLayer<1, PadMode::Constant>;
using ConstantPad2d = PaddingLayer<2, PadMode::Constant>;
using ConstantPad3d = PaddingLayer<3, PadMode::Constant>;
using ReflectionPad1d = PaddingLayer<1, PadMode::Reflect>;
using ReflectionPad2d = PaddingLayer<2, PadMode::Reflect>;
using ReflectionPad3d = PaddingLayer<3, PadMode::Reflect>;
using ReplicationPad1d = PaddingLayer<1, PadMode::Replicate>;
using ReplicationPad2d = PaddingLayer<2, PadMode::Replicate>;
using ReplicationPad3d = PaddingLayer<3, PadMode::Replicate>;
using CircularPad1d = PaddingLayer<1, PadMode::Circular>;
using CircularPad2d = PaddingLayer<2, PadMode::Circular>;
using CircularPad3d = PaddingLayer<3, PadMode::Circular>;

}  // namespace lockstep::nn

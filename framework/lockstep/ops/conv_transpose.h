// Transposed convolution over one to three spatial axes: the map that is a convolution's gradient by its input, from
// x (N, in, spatial sizes), weight (in, out / groups, filter sizes), bias (out) to y (N, out, spatial sizes). Along
// each axis y has (n - 1) stride - 2 padding + dilation (filter - 1) + output_padding + 1 elements for the n of x.
#pragma once

#include "lockstep/ops/convolution.h"

namespace lockstep {

struct ConvTransposeOptions {
  // Of the convolution from y to x. Without axes, those of the weight have stride 1, no padding and no dilation.
  ConvolutionOptions convolution = {};
  // Elements added at the end of each axis, where the convolution from y to x leaves a rest: less than the stride.
  // Empty: none.
  std::vector<std::int64_t> output_padding = {};
};

// Differentiable any number of times. Throws Error where shapes, types or options do not fit.
Value conv_transpose(Value x, Value weight, Value bias = {}, ConvTransposeOptions options = {});

}  // namespace lockstep

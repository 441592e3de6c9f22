// The static rule by which a convolution's algorithm is chosen, one for all directions.
#pragma once

#include <dnnl.hpp>
#include <vector>

#include "lockstep/kernels/kernel.h"
#include "lockstep/ops/conv2d.h"

namespace lockstep::onednn {

struct ConvolutionShape {
  Conv2dOptions options;
  Shape x, weight, y;
};

// Those worth trying, the one that should be fastest first.
std::vector<dnnl::algorithm> algorithms(const ConvolutionShape& shape, DType dtype, KernelOptions::ConvMath math);

}  // namespace lockstep::onednn

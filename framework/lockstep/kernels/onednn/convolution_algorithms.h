// The static rule by which a convolution's algorithm is chosen, per direction.
#pragma once

#include <dnnl.hpp>
#include <vector>

#include "lockstep/kernels/kernel.h"
#include "lockstep/ops/convolution.h"

namespace lockstep::kernels::onednn {

struct ConvolutionShape {
  ConvolutionOptions options;
  Shape x, weight, y;
};

enum class Direction : std::uint8_t { Forward, BackwardData, BackwardWeights };

// The algorithms worth trying, the one that should be fastest first.
std::vector<dnnl::algorithm> algorithms(const ConvolutionShape& shape, Direction direction, DType dtype,
                                        KernelOptions::ConvMath math);

}  // namespace lockstep::kernels::onednn

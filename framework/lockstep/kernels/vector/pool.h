// Max pooling over the planes of generic/pool.h (blocks of 8 and 16 channels; plain ones where supports_max_pool says
// so), with its u8 positions and its results bit for bit. T is float or Bf16. On OpenMP threads, by planes; nothing
// allocates or throws.
#pragma once

#include "lockstep/kernels/generic/pool.h"
#include "lockstep/kernels/vector/vector_kernels.h"

namespace lockstep::vector {

bool supports_max_pool(const generic::PoolGeometry& g);
template <class T>
void max_pool_forward(const generic::PoolGeometry& g, const T* x, T* y, std::uint8_t* index,
                      const VectorKernels& kernels = vector_kernels());

}  // namespace lockstep::vector

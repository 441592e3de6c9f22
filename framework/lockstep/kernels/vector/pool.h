// Max pooling of blocks of 16 channels, [batch, channels / 16, in_h, in_w, 16], vectorised: the results of
// generic/pool.h with positions in a byte, at several times its speed. Padding of outputs becomes 0. T: float, Bf16.
#pragma once

#include "lockstep/kernels/generic/pool.h"
#include "lockstep/kernels/vector/vector_kernels.h"

namespace lockstep::vector {

template <class T>
void max_pool_forward(const generic::PoolGeometry& g, const T* x, T* y, std::uint8_t* position);

}  // namespace lockstep::vector

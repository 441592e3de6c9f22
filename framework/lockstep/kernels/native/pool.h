// Max pooling over the images of generic/pool.h with u8 positions, bit for bit as there. Forward: over up to three axes
// on blocks of 8 and 16 channels and, where windows follow each other at 1 or 2 columns, on plain planes. Backward: on
// blocks with windows side by side, and with windows of 3 x 3 at every other position of a plane; on plain planes with
// windows of 2 x 2 side by side. T is float or Bf16. On OpenMP threads, by images; nothing allocates or throws.
#pragma once

#include "lockstep/kernels/common/geometry.h"
#include "lockstep/kernels/native/native_kernels.h"

namespace lockstep::kernels::native {

bool supports_max_pool_forward(const PoolGeometry& g);
bool supports_max_pool_backward(const PoolGeometry& g);
template <class T>
void max_pool_forward(const PoolGeometry& g, const T* x, T* y, std::uint8_t* index,
                      const NativeKernels& kernels = native_kernels());
template <class T>
void max_pool_backward(const PoolGeometry& g, const T* dy, const std::uint8_t* index, T* dx,
                       const NativeKernels& kernels = native_kernels());

}  // namespace lockstep::kernels::native

// Products of pairs of vectors in f32 (ops/pair_products.h): each sample is a product of a matrix with its transpose,
// or of the slopes of the pairs with the vectors. Sums are in the order of elements, those of the gradient in the order
// of vectors, so that the bits depend on nothing else. Nothing allocates in a run.
#pragma once

#include <cstddef>

#include "lockstep/kernels/common/pair_geometry.h"
#include "lockstep/kernels/native/native_kernels.h"

namespace lockstep::kernels::native {

// Bytes of scratch memory for `workers` threads.
std::size_t pair_products_scratch(const PairGeometry& g, std::int64_t workers);
std::size_t pair_products_gradient_scratch(const PairGeometry& g, std::int64_t workers);
// x [samples][vectors][width], y [samples][pairs].
void pair_products(const PairGeometry& g, const float* x, float* y, std::int64_t workers, float* scratch,
                   const NativeKernels& kernels = native_kernels());
void pair_products_gradient(const PairGeometry& g, const float* dy, const float* x, float* dx, std::int64_t workers,
                            float* scratch, const NativeKernels& kernels = native_kernels());

}  // namespace lockstep::kernels::native

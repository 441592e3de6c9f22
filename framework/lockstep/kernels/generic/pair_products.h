// Products of pairs of vectors in plain loops (ops/pair_products.h). Sums are in the order of elements, those of the
// gradient in the order of vectors. Nothing allocates.
#pragma once

#include "lockstep/kernels/common/pair_geometry.h"

namespace lockstep::kernels::generic {

// x [samples][vectors][width], y [samples][pairs].
template <class T>
void pair_products(const PairGeometry& g, const T* x, T* y);
template <class T>
void pair_products_gradient(const PairGeometry& g, const T* dy, const T* x, T* dx);

}  // namespace lockstep::kernels::generic

// Sizes of the products of pairs (ops/pair_products.h).
#pragma once

#include <cstdint>

#include "lockstep/core/shape.h"

namespace lockstep::kernels {

struct PairGeometry {
  explicit PairGeometry(const Shape& x) : samples(x[0]), vectors(x[1]), width(x[2]) {}
  std::int64_t pairs() const { return vectors * (vectors - 1) / 2; }
  std::int64_t elements() const { return vectors * width; }  // of a sample

  std::int64_t samples, vectors, width;
};

}  // namespace lockstep::kernels

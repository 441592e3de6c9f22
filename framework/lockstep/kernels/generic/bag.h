// Bags of rows (ops/bag.h): plain loops over bags, on several threads; the results do not depend on threads. Nothing
// allocates.
#pragma once

#include <cstdint>
#include <optional>

#include "lockstep/ops/bag.h"

namespace lockstep::kernels::generic {

// x [bags][capacity][width]. With `padding`, `use` has an id for each entry, and entries with the id `padding` are not
// used; without it, `use` has a count for each bag.
struct BagGeometry {
  std::int64_t bags = 0, capacity = 0, width = 0;
  BagMode mode = BagMode::Sum;
  std::optional<std::int64_t> padding = {};
};

// y [bags][width].
template <class T>
void join_bags(const BagGeometry& g, const T* x, const std::int64_t* use, T* y);
// dx, of x's shape, from dy [bags][width].
template <class T>
void spread_bags(const BagGeometry& g, const T* dy, const T* x, const std::int64_t* use, T* dx);

}  // namespace lockstep::kernels::generic

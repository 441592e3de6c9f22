// A computation of which the answer is known, to find a rank whose arithmetic is wrong.
#pragma once

#include <cstdint>

namespace lockstep::train {

// A matrix product whose every partial sum is exact in f32, so that each rank must get the same bits, whatever its
// BLAS, threads and instructions: a hash of the answer by OpenBLAS, and by integers.
struct KnownProduct {
  std::uint64_t computed = 0, expected = 0;
};
KnownProduct known_product();

}  // namespace lockstep::train

// A computation with a known result, to find a rank whose arithmetic is wrong.
#pragma once

#include <cstdint>

namespace lockstep::train {

// Hashes of a matrix product, computed by OpenBLAS and by integers. Every partial sum is exact in f32, so each rank
// must get the same bits with any BLAS, threads and instructions.
struct KnownProduct {
  std::uint64_t computed = 0, expected = 0;
};
KnownProduct known_product();

}  // namespace lockstep::train

// Products of stacks of matrices, y[i] = op(a[i]) op(b[i]), row-major; a stack of one matrix, or with dimensions of 1,
// is repeated as NumPy broadcasts it. On OpenBLAS, matrix by matrix; several threads share out small matrices, which
// OpenBLAS multiplies on one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/core/shape.h"

namespace lockstep::kernels::generic {

class BatchedGemm {
 public:
  // Shapes (..., rows, columns) as they lie in memory, and of the result.
  BatchedGemm(const Shape& a, bool transpose_a, const Shape& b, bool transpose_b, const Shape& y);
  template <class T>
  void run(const T* a, const T* b, T* y) const;

 private:
  struct Offsets {  // in elements, of the matrices of one product
    std::int64_t a, b;
  };

  bool transpose_a_, transpose_b_;
  std::int64_t m_, n_, k_, columns_a_, columns_b_;
  std::vector<Offsets> products_;
};

}  // namespace lockstep::kernels::generic

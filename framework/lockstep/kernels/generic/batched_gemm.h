// Products of stacks of matrices, y[i] = op(a[i]) op(b[i]), row-major; a stack of one matrix, or with dimensions of 1,
// is repeated as NumPy broadcasts it. Matrix by matrix, by `way` (matrix_product.h); several threads share out small
// matrices, which OpenBLAS multiplies on one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/core/shape.h"
#include "lockstep/kernels/generic/matrix_product.h"

namespace lockstep::kernels::generic {

class BatchedGemm {
 public:
  // Shapes (..., rows, columns) as they lie in memory, and of the result.
  BatchedGemm(MatrixProduct::Way way, const Shape& a, bool transpose_a, const Shape& b, bool transpose_b,
              const Shape& y);
  std::int64_t scratch() const { return product_.scratch(); }  // elements
  template <class T>
  void run(const T* a, const T* b, T* y, T* scratch) const;

 private:
  struct Offsets {  // in elements, of the matrices of one product
    std::int64_t a, b;
  };

  MatrixProduct product_;
  std::int64_t columns_a_, columns_b_, columns_y_, elements_y_;
  bool threads_;       // share out matrices
  std::int64_t work_;  // of a matrix
  std::vector<Offsets> products_;
};

}  // namespace lockstep::kernels::generic

// Stacks of matrices whose leading dimensions broadcast as in NumPy.
#pragma once

#include <cstdint>

#include "lockstep/core/shape.h"

namespace lockstep::kernels {

// The offset of the matrix that belongs to number `product` of the stack of y.
inline std::int64_t matrix_offset(const Shape& operand, const Shape& y, std::int64_t product) {
  const int rank = operand.rank();
  std::int64_t stride = operand[rank - 1] * operand[rank - 2], offset = 0;
  for (int i = 3; i <= y.rank(); ++i) {
    const std::int64_t index = product % y[y.rank() - i];
    product /= y[y.rank() - i];
    if (i > rank) continue;
    if (operand[rank - i] != 1) offset += index * stride;
    stride *= operand[rank - i];
  }
  return offset;
}

}  // namespace lockstep::kernels

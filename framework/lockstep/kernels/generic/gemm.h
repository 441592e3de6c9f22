// Dense row-major matrix product on BLAS: c = alpha * op(a) * op(b) + beta * c, with op(a) [m, k], op(b) [k, n],
// c [m, n] and leading dimensions in elements of a stored row. beta = 0 overwrites c, whatever it held. m, n or k = 0
// is legal. Throws Error for a count past BLAS's int or a leading dimension shorter than its row.
#pragma once

#include <cstdint>

namespace lockstep::kernels::generic {

template <class T>
void gemm(bool trans_a, bool trans_b, std::int64_t m, std::int64_t n, std::int64_t k, T alpha, const T* a,
          std::int64_t lda, const T* b, std::int64_t ldb, T beta, T* c, std::int64_t ldc);

}  // namespace lockstep::kernels::generic

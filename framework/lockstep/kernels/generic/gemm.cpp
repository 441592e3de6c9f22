#include "lockstep/kernels/generic/gemm.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string_view>
#include <type_traits>

#include "lockstep/core/error.h"

// The Fortran interface, which every BLAS has; the lengths of the two texts come last, as Fortran compilers pass them.
// NOLINTBEGIN(readability-identifier-naming): the names are BLAS's
extern "C" {
void sgemm_(const char* trans_a, const char* trans_b, const int* m, const int* n, const int* k, const float* alpha,
            const float* a, const int* lda, const float* b, const int* ldb, const float* beta, float* c, const int* ldc,
            std::size_t, std::size_t);
void dgemm_(const char* trans_a, const char* trans_b, const int* m, const int* n, const int* k, const double* alpha,
            const double* a, const int* lda, const double* b, const int* ldb, const double* beta, double* c,
            const int* ldc, std::size_t, std::size_t);
}
// NOLINTEND(readability-identifier-naming)

namespace lockstep::kernels::generic {
namespace {

int blas_int(std::int64_t value, std::string_view name) {
  check(value >= 0 && value <= std::numeric_limits<int>::max(), "gemm", "{} is {}, expected 0 to {}", name, value,
        std::numeric_limits<int>::max());
  return static_cast<int>(value);
}

int leading(std::int64_t value, std::int64_t row, std::string_view name) {
  check(value >= row, "gemm", "{} is {}, expected at least the row length {}", name, value, row);
  return std::max(1, blas_int(value, name));
}

}  // namespace

template <class T>
void gemm(bool trans_a, bool trans_b, std::int64_t m, std::int64_t n, std::int64_t k, T alpha, const T* a,
          std::int64_t lda, const T* b, std::int64_t ldb, T beta, T* c, std::int64_t ldc) {
  const int rows = blas_int(m, "m"), cols = blas_int(n, "n"), depth = blas_int(k, "k");
  const int step_a = leading(lda, trans_a ? m : k, "lda"), step_b = leading(ldb, trans_b ? k : n, "ldb");
  const int step_c = leading(ldc, n, "ldc");
  if (m == 0 || n == 0) return;
  if (k == 0) {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) c[i * ldc + j] = beta == T(0) ? T(0) : beta * c[i * ldc + j];
    }
    return;
  }
  // Rows here are columns in Fortran, so the transposed product is computed: cᵀ = op(b)ᵀ op(a)ᵀ.
  const char* const ta = trans_a ? "T" : "N";
  const char* const tb = trans_b ? "T" : "N";
  if constexpr (std::is_same_v<T, float>) {
    sgemm_(tb, ta, &cols, &rows, &depth, &alpha, b, &step_b, a, &step_a, &beta, c, &step_c, 1, 1);
  } else {
    dgemm_(tb, ta, &cols, &rows, &depth, &alpha, b, &step_b, a, &step_a, &beta, c, &step_c, 1, 1);
  }
}

template void gemm<float>(bool, bool, std::int64_t, std::int64_t, std::int64_t, float, const float*, std::int64_t,
                          const float*, std::int64_t, float, float*, std::int64_t);
template void gemm<double>(bool, bool, std::int64_t, std::int64_t, std::int64_t, double, const double*, std::int64_t,
                           const double*, std::int64_t, double, double*, std::int64_t);

}  // namespace lockstep::kernels::generic

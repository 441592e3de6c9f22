// A row-major product c = op(a) op(b) of fixed sizes: op(a) [m, k], op(b) [k, n], c [m, n]. Two ways:
// Blas: OpenBLAS; the bits follow its version, the processor and the number of threads.
// Portable: the same bits everywhere. An element of c is a sum of parts of kDepth products; a part adds its products in
// order of k, from zero, in f32 by fused multiply-adds (native's ProductTable), in f64 by a product and an addition;
// the parts are added in order, to c if it is added to. Packs both operands, so it is slower than OpenBLAS where m is
// small. Immutable; run() works on OpenMP threads, and neither allocates nor throws with Portable.
#pragma once

#include <cstdint>

namespace lockstep::kernels::generic {

// A matrix in memory: rows are `stride` elements apart.
template <class T>
struct Matrix {
  T* data;
  std::int64_t stride;
};

class MatrixProduct {
 public:
  static constexpr std::int64_t kDepth = 512;
  enum class Way : std::uint8_t { Blas, Portable };
  struct Sizes {
    bool transpose_a, transpose_b;  // how they lie in memory: a [k, m] if it is transposed
    std::int64_t m, n, k;
  };
  MatrixProduct(Way way, const Sizes& sizes) : way_(way), s_(sizes) {}

  std::int64_t scratch() const;  // elements
  // c = op(a) op(b), or c += op(a) op(b) if `adds`. `scratch` is the caller's. m, n or k = 0 is legal.
  template <class T>
  void run(Matrix<const T> a, Matrix<const T> b, bool adds, Matrix<T> c, T* scratch) const;

 private:
  template <class T>
  void run_portable(Matrix<const T> a, Matrix<const T> b, bool adds, Matrix<T> c, T* scratch) const;

  Way way_;
  Sizes s_;
};

}  // namespace lockstep::kernels::generic

#include "lockstep/kernels/generic/batched_gemm.h"

#include "lockstep/core/parallel_for.h"
#include "lockstep/kernels/common/stack.h"
#include "lockstep/kernels/generic/gemm.h"

namespace lockstep::kernels::generic {
namespace {

// Multiply-adds of one product up to which OpenBLAS works on the calling thread (GEMM_MULTITHREAD_THRESHOLD of its
// interface/gemm.c, 4 times 65536 by default).
constexpr std::int64_t kSmall = 262144;

}  // namespace

BatchedGemm::BatchedGemm(const Shape& a, bool transpose_a, const Shape& b, bool transpose_b, const Shape& y)
    : transpose_a_(transpose_a),
      transpose_b_(transpose_b),
      m_(y[y.rank() - 2]),
      n_(y[y.rank() - 1]),
      k_(a[a.rank() - (transpose_a ? 2 : 1)]),
      columns_a_(a[a.rank() - 1]),
      columns_b_(b[b.rank() - 1]) {
  std::int64_t count = 1;
  for (int i = 0; i < y.rank() - 2; ++i) count *= y[i];
  for (std::int64_t p = 0; p < count; ++p) products_.push_back({matrix_offset(a, y, p), matrix_offset(b, y, p)});
}

template <class T>
void BatchedGemm::run(const T* a, const T* b, T* y) const {
  const auto multiply = [=, this](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      const Offsets& at = products_[static_cast<std::size_t>(p)];
      gemm(transpose_a_, transpose_b_, m_, n_, k_, T(1), a + at.a, columns_a_, b + at.b, columns_b_, T(0),
           y + p * m_ * n_, n_);
    }
  };
  const auto count = static_cast<std::int64_t>(products_.size());
  if (m_ * n_ * k_ > kSmall) return multiply(0, count);
  parallel_for(count, m_ * n_ * k_ / 8, multiply);
}

template void BatchedGemm::run<float>(const float*, const float*, float*) const;
template void BatchedGemm::run<double>(const double*, const double*, double*) const;

}  // namespace lockstep::kernels::generic

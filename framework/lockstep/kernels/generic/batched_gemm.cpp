#include "lockstep/kernels/generic/batched_gemm.h"

#include "lockstep/core/parallel_for.h"
#include "lockstep/kernels/common/stack.h"

namespace lockstep::kernels::generic {
namespace {

// Multiply-adds of one product up to which OpenBLAS works on the calling thread (GEMM_MULTITHREAD_THRESHOLD of its
// interface/gemm.c, 4 times 65536 by default).
constexpr std::int64_t kSmall = 262144;

MatrixProduct::Sizes sizes_of(const Shape& a, bool transpose_a, bool transpose_b, const Shape& y) {
  return {.transpose_a = transpose_a,
          .transpose_b = transpose_b,
          .m = y[y.rank() - 2],
          .n = y[y.rank() - 1],
          .k = a[a.rank() - (transpose_a ? 2 : 1)]};
}

}  // namespace

BatchedGemm::BatchedGemm(MatrixProduct::Way way, const Shape& a, bool transpose_a, const Shape& b, bool transpose_b,
                         const Shape& y)
    : product_(way, sizes_of(a, transpose_a, transpose_b, y)),
      columns_a_(a[a.rank() - 1]),
      columns_b_(b[b.rank() - 1]),
      columns_y_(y[y.rank() - 1]),
      elements_y_(y[y.rank() - 2] * columns_y_),
      work_(elements_y_ * a[a.rank() - (transpose_a ? 2 : 1)]) {
  threads_ = way == MatrixProduct::Way::Blas && work_ <= kSmall;
  std::int64_t count = 1;
  for (int i = 0; i < y.rank() - 2; ++i) count *= y[i];
  for (std::int64_t p = 0; p < count; ++p) products_.push_back({matrix_offset(a, y, p), matrix_offset(b, y, p)});
}

template <class T>
void BatchedGemm::run(const T* a, const T* b, T* y, T* scratch) const {
  const auto multiply = [=, this](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      const Offsets& at = products_[static_cast<std::size_t>(p)];
      product_.run<T>({a + at.a, columns_a_}, {b + at.b, columns_b_}, false, {y + p * elements_y_, columns_y_},
                      scratch);
    }
  };
  const auto count = static_cast<std::int64_t>(products_.size());
  if (!threads_) return multiply(0, count);
  parallel_for(count, work_ / 8, multiply);
}

template void BatchedGemm::run<float>(const float*, const float*, float*, float*) const;
template void BatchedGemm::run<double>(const double*, const double*, double*, double*) const;

}  // namespace lockstep::kernels::generic

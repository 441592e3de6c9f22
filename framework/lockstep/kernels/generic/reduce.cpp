#include "lockstep/kernels/generic/reduce.h"

#include <algorithm>

#include "lockstep/core/error.h"

namespace lockstep::kernels::generic {

template <class T>
double sum(std::int64_t n, const T* x) {
  return ordered_sum(n, [x](std::int64_t i) { return static_cast<double>(x[i]); });
}

template <class T>
double mean(std::int64_t n, const T* x) {
  return n > 0 ? sum(n, x) / static_cast<double>(n) : 0.0;
}

template <class T>
void column_sum(std::int64_t rows, std::int64_t cols, const T* x, T* out) {
  constexpr std::int64_t kWidth = 64;  // columns at a time: whole cache lines, totals in the first-level cache
  parallel_for((cols + kWidth - 1) / kWidth, rows * kWidth, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t first = block * kWidth, width = std::min(kWidth, cols - first);
      double total[kWidth] = {};
      for (std::int64_t r = 0; r < rows; ++r) {
        const T* row = x + r * cols + first;
        for (std::int64_t c = 0; c < width; ++c) total[c] += static_cast<double>(row[c]);
      }
      for (std::int64_t c = 0; c < width; ++c) out[first + c] = static_cast<T>(total[c]);
    }
  });
}

template <class T>
void sum_to(const Shape& from, const Shape& to, const T* x, double* totals, T* out) {
  constexpr int kMaxRank = 8;
  check(from.rank() <= kMaxRank, "sum_to", "shape {} has more than {} dimensions", from.str(), kMaxRank);
  std::int64_t steps[kMaxRank] = {}, index[kMaxRank] = {}, stride = 1;
  for (int i = 0; i < to.rank(); ++i) {
    const std::int64_t size = to[to.rank() - 1 - i];
    steps[from.rank() - 1 - i] = size == 1 ? 0 : stride;
    stride *= size;
  }
  std::fill_n(totals, to.elements(), 0.0);
  const std::int64_t n = from.elements();
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    totals[at] += static_cast<double>(x[i]);
    for (int d = from.rank() - 1; d >= 0; --d) {
      at += steps[d];
      if (++index[d] < from[d]) break;
      at -= steps[d] * from[d];
      index[d] = 0;
    }
  }
  std::transform(totals, totals + to.elements(), out, [](double total) { return static_cast<T>(total); });
}

template void sum_to<float>(const Shape&, const Shape&, const float*, double*, float*);
template void sum_to<double>(const Shape&, const Shape&, const double*, double*, double*);
template double sum<float>(std::int64_t, const float*);
template double sum<double>(std::int64_t, const double*);
template double mean<float>(std::int64_t, const float*);
template double mean<double>(std::int64_t, const double*);
template void column_sum<float>(std::int64_t, std::int64_t, const float*, float*);
template void column_sum<double>(std::int64_t, std::int64_t, const double*, double*);

}  // namespace lockstep::kernels::generic

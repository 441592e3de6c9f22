#include "lockstep/kernels/generic/reduce.h"

#include <algorithm>

namespace lockstep::kernels::generic {

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

template void column_sum<float>(std::int64_t, std::int64_t, const float*, float*);
template void column_sum<double>(std::int64_t, std::int64_t, const double*, double*);

}  // namespace lockstep::kernels::generic

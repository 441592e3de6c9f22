// Sums in a fixed order: chunks of fixed size summed in double on eight lanes, combined pairwise, so the result depends
// on the values and n alone, never on threads or addresses. Nothing allocates; an empty sum is 0. reduce_axes.h sums
// over any axes.
#pragma once

#include <cstdint>

#include "lockstep/core/partition.h"
#include "lockstep/kernels/generic/elementwise.h"

namespace lockstep::kernels::generic {

namespace detail {

inline constexpr std::int64_t kSumChunk = 1024, kSumParts = 64, kLanes = 8;

inline double pairwise(const double* values, std::int64_t n) {
  if (n <= 1) return n == 1 ? values[0] : 0.0;
  return pairwise(values, n / 2) + pairwise(values + n / 2, n - n / 2);
}

template <class Term>
double chunk_sum(std::int64_t begin, std::int64_t end, const Term& term) {
  if (end - begin > kSumChunk) {
    const std::int64_t half = (end - begin) / 2;
    return chunk_sum(begin, begin + half, term) + chunk_sum(begin + half, end, term);
  }
  double lanes[kLanes] = {};
  std::int64_t i = begin;
  for (; i + kLanes <= end; i += kLanes) {
    for (std::int64_t l = 0; l < kLanes; ++l) lanes[l] += term(i + l);
  }
  for (; i < end; ++i) lanes[(i - begin) & (kLanes - 1)] += term(i);
  return pairwise(lanes, kLanes);
}

}  // namespace detail

// out[c] = sum over rows of x[rows, cols], each column in row order in double.
template <class T>
void column_sum(std::int64_t rows, std::int64_t cols, const T* x, T* out);

}  // namespace lockstep::kernels::generic

// Sums in a fixed order: chunks of fixed size summed in double on eight lanes, combined pairwise, so the result depends
// on the values and n alone, never on threads or addresses. Nothing allocates; an empty sum is 0.
#pragma once

#include <cstdint>

#include "lockstep/core/partition.h"
#include "lockstep/core/shape.h"
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

// The sum over i < n of double term(i), which must be pure.
template <class Term>
double ordered_sum(std::int64_t n, const Term& term) {
  double partial[detail::kSumParts] = {};
  parallel_for(detail::kSumParts, n / detail::kSumParts, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      const Range range = part_of(n, detail::kSumParts, p);
      partial[p] = detail::chunk_sum(range.begin, range.end, term);
    }
  });
  return detail::pairwise(partial, detail::kSumParts);
}

template <class T>
double sum(std::int64_t n, const T* x);
// 0 for n = 0.
template <class T>
double mean(std::int64_t n, const T* x);
// out[c] = sum over rows of x[rows, cols], each column in row order in double.
template <class T>
void column_sum(std::int64_t rows, std::int64_t cols, const T* x, T* out);

// out = x summed over the dimensions that broadcasting from `to` to `from` repeats, each sum in the order of x's
// elements. totals [elements of to] is scratch space.
template <class T>
void sum_to(const Shape& from, const Shape& to, const T* x, double* totals, T* out);

}  // namespace lockstep::kernels::generic

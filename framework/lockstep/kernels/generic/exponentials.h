// Exponentials of logits minus a shift of their position, a block at a time, and their sums in the order of classes. A
// value depends on its own logit and shift alone, and a sum on the logits of its position, whatever the block. Nothing
// allocates.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lockstep/kernels/native/math.h"

namespace lockstep::kernels::generic {

// The number of exponentials that are computed at a time: of several whole rows, or of a part of one row.
inline constexpr std::int64_t kBlock = 256;

inline std::int64_t rows_at_a_time(std::int64_t c) {
  return std::max<std::int64_t>(kBlock / std::max<std::int64_t>(c, 1), 1);
}

// Calls visit(row, begin, end) for the parts of rows of c elements that lie in [begin, end), in order.
template <class Visit>
void for_rows(std::int64_t begin, std::int64_t end, std::int64_t c, const Visit& visit) {
  while (begin < end) {
    const std::int64_t row = begin / c, stop = std::min(end, (row + 1) * c);
    visit(row, begin, stop);
    begin = stop;
  }
}

// Calls visit(row, begin, end, e) for parts of rows, in order: e[i] is exp(x[begin + i] - shifts[row]).
template <class T, class Visit>
void for_exponentials(std::int64_t rows, std::int64_t c, const T* x, const double* shifts, const Visit& visit) {
  double values[kBlock];
  for (std::int64_t first = 0; first < rows * c; first += kBlock) {
    const std::int64_t last = std::min(rows * c, first + kBlock);
    for_rows(first, last, c, [&](std::int64_t row, std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) values[i - first] = static_cast<double>(x[i]) - shifts[row];
    });
    native::exp_all(last - first, values, values);
    for_rows(first, last, c, [&](std::int64_t row, std::int64_t begin, std::int64_t end) {
      visit(row, begin, end, values + (begin - first));
    });
  }
}

// Per row the largest value, and the sum of exp(x - largest).
template <class T>
void sum_exponentials(std::int64_t rows, std::int64_t c, const T* x, double* tops, double* totals) {
  for (std::int64_t row = 0; row < rows; ++row) {
    tops[row] = c > 0 ? static_cast<double>(*std::max_element(x + row * c, x + (row + 1) * c)) : 0;
    totals[row] = 0;
  }
  for_exponentials(rows, c, x, tops, [&](std::int64_t row, std::int64_t begin, std::int64_t end, const double* e) {
    double total = totals[row];
    for (std::int64_t i = 0; i < end - begin; ++i) total += e[i];
    totals[row] = total;
  });
}

// The same for positions that lie beside each other, x[class * stride + position], at most kBlock of them.
template <class T, class Visit>
void for_column_exponentials(std::int64_t count, std::int64_t c, std::int64_t stride, const T* x, const double* shifts,
                             const Visit& visit) {
  double values[kBlock];
  for (std::int64_t j = 0; j < c; ++j) {
    for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<double>(x[j * stride + i]) - shifts[i];
    native::exp_all(count, values, values);
    visit(j, values);
  }
}

template <class T>
void sum_column_exponentials(std::int64_t count, std::int64_t c, std::int64_t stride, const T* x, double* tops,
                             double* totals) {
  for (std::int64_t i = 0; i < count; ++i) {
    tops[i] = c > 0 ? static_cast<double>(x[i]) : 0;
    totals[i] = 0;
  }
  for (std::int64_t j = 1; j < c; ++j) {
    for (std::int64_t i = 0; i < count; ++i) tops[i] = std::max(tops[i], static_cast<double>(x[j * stride + i]));
  }
  for_column_exponentials(count, c, stride, x, tops, [&](std::int64_t, const double* e) {
    for (std::int64_t i = 0; i < count; ++i) totals[i] += e[i];
  });
}

}  // namespace lockstep::kernels::generic

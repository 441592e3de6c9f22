#include <algorithm>

#include "lockstep/core/parallel_for.h"
#include "lockstep/kernels/generic/softmax_cross_entropy.h"
#include "lockstep/kernels/native/math.h"

namespace lockstep::kernels::generic {
namespace {

constexpr std::int64_t kWidth = 128;  // columns at a time

// Calls body(offset of the first element, columns) for blocks of columns of [n, c, inner].
template <class Body>
void for_columns(std::int64_t n, std::int64_t c, std::int64_t inner, std::int64_t work, const Body& body) {
  if (c == 0) return;
  const std::int64_t blocks = (inner + kWidth - 1) / kWidth;
  parallel_for(n * blocks, c * std::min(inner, kWidth) * work, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = i % blocks * kWidth;
      body(i / blocks * c * inner + first, std::min(kWidth, inner - first));
    }
  });
}

// e = exp(x - top) for a row of columns.
template <class T>
void exponentials(std::int64_t width, const T* x, const T* tops, double* e) {
  for (std::int64_t i = 0; i < width; ++i) e[i] = static_cast<double>(x[i]) - static_cast<double>(tops[i]);
  native::exp_all(width, e, e);
}

}  // namespace

template <class T>
void softmax_columns_forward(std::int64_t n, std::int64_t c, std::int64_t inner, const T* x, T* y) {
  for_columns(n, c, inner, 16, [=](std::int64_t at, std::int64_t width) {
    T tops[kWidth];
    double totals[kWidth] = {}, e[kWidth];
    std::copy_n(x + at, width, tops);
    for (std::int64_t j = 1; j < c; ++j) {
      const T* row = x + at + j * inner;
      for (std::int64_t i = 0; i < width; ++i) tops[i] = row[i] > tops[i] ? row[i] : tops[i];
    }
    for (std::int64_t j = 0; j < c; ++j) {
      exponentials(width, x + at + j * inner, tops, e);
      for (std::int64_t i = 0; i < width; ++i) totals[i] += e[i];
    }
    for (std::int64_t j = 0; j < c; ++j) {
      exponentials(width, x + at + j * inner, tops, e);
      T* out = y + at + j * inner;
      for (std::int64_t i = 0; i < width; ++i) out[i] = static_cast<T>(e[i] / totals[i]);
    }
  });
}

template <class T>
void softmax_columns_backward(std::int64_t n, std::int64_t c, std::int64_t inner, const T* y, const T* dy, T* dx) {
  for_columns(n, c, inner, 2, [=](std::int64_t at, std::int64_t width) {
    double products[kWidth] = {};
    for (std::int64_t j = 0; j < c; ++j) {
      const T *p = y + at + j * inner, *d = dy + at + j * inner;
      for (std::int64_t i = 0; i < width; ++i) products[i] += static_cast<double>(p[i]) * static_cast<double>(d[i]);
    }
    for (std::int64_t j = 0; j < c; ++j) {
      const T *p = y + at + j * inner, *d = dy + at + j * inner;
      T* out = dx + at + j * inner;
      for (std::int64_t i = 0; i < width; ++i)
        out[i] = static_cast<T>(static_cast<double>(p[i]) * (static_cast<double>(d[i]) - products[i]));
    }
  });
}

#define LOCKSTEP_INSTANTIATE(T)                                                                     \
  template void softmax_columns_forward<T>(std::int64_t, std::int64_t, std::int64_t, const T*, T*); \
  template void softmax_columns_backward<T>(std::int64_t, std::int64_t, std::int64_t, const T*, const T*, T*);
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(double)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::generic

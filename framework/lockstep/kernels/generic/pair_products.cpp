#include "lockstep/kernels/generic/pair_products.h"

#include <algorithm>

#include "lockstep/core/parallel_for.h"

namespace lockstep::kernels::generic {
namespace {

template <class T>
T dot(std::int64_t n, const T* a, const T* b) {
  T sum = 0;
  for (std::int64_t e = 0; e < n; ++e) sum += a[e] * b[e];
  return sum;
}

}  // namespace

template <class T>
void pair_products(const PairGeometry& g, const T* x, T* y) {
  parallel_for(g.samples, g.pairs() * g.width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n) {
      const T* const vectors = x + n * g.elements();
      T* to = y + n * g.pairs();
      for (std::int64_t i = 1; i < g.vectors; ++i) {
        for (std::int64_t j = 0; j < i; ++j) *to++ = dot(g.width, vectors + i * g.width, vectors + j * g.width);
      }
    }
  });
}

template <class T>
void pair_products_gradient(const PairGeometry& g, const T* dy, const T* x, T* dx) {
  parallel_for(g.samples, g.pairs() * g.width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n) {
      const T *const vectors = x + n * g.elements(), *const slopes = dy + n * g.pairs();
      for (std::int64_t i = 0; i < g.vectors; ++i) {
        T* const to = dx + n * g.elements() + i * g.width;
        std::fill_n(to, g.width, T{0});
        for (std::int64_t j = 0; j < g.vectors; ++j) {
          if (i == j) continue;
          const std::int64_t high = std::max(i, j), low = std::min(i, j);
          const T slope = slopes[high * (high - 1) / 2 + low];
          for (std::int64_t e = 0; e < g.width; ++e) to[e] += slope * vectors[j * g.width + e];
        }
      }
    }
  });
}

template void pair_products<float>(const PairGeometry&, const float*, float*);
template void pair_products<double>(const PairGeometry&, const double*, double*);
template void pair_products_gradient<float>(const PairGeometry&, const float*, const float*, float*);
template void pair_products_gradient<double>(const PairGeometry&, const double*, const double*, double*);

}  // namespace lockstep::kernels::generic

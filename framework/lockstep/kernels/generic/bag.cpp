#include "lockstep/kernels/generic/bag.h"

#include <algorithm>

#include "lockstep/core/parallel_for.h"

namespace lockstep::kernels::generic {
namespace {

// The entries that a bag uses.
struct Uses {
  const BagGeometry& g;
  const std::int64_t* use;
  std::int64_t bag;
  bool operator[](std::int64_t entry) const {
    return g.padding ? use[bag * g.capacity + entry] != *g.padding : entry < use[bag];
  }
  std::int64_t count() const {
    std::int64_t used = 0;
    for (std::int64_t k = 0; k < g.capacity; ++k) used += (*this)[k];
    return used;
  }
};

// The entry with the largest element in this column, the first of equal ones; a NaN is the largest. -1: an empty bag.
template <class T>
std::int64_t largest(const BagGeometry& g, const T* x, const Uses& uses, std::int64_t column) {
  std::int64_t best = -1;
  for (std::int64_t k = 0; k < g.capacity; ++k) {
    if (!uses[k]) continue;
    const T value = x[k * g.width + column];
    if (best >= 0) {
      const T most = x[best * g.width + column];
      if (most != most || !(value > most || value != value)) continue;
    }
    best = k;
  }
  return best;
}

constexpr std::int64_t kBlock = 256;  // columns

template <class T>
void sum_bag(const BagGeometry& g, const T* x, const Uses& uses, T* y) {
  const std::int64_t used = g.mode == BagMode::Mean ? std::max<std::int64_t>(uses.count(), 1) : 1;
  for (std::int64_t at = 0; at < g.width; at += kBlock) {
    const std::int64_t n = std::min(kBlock, g.width - at);
    double totals[kBlock];
    std::fill_n(totals, n, 0.0);
    for (std::int64_t k = 0; k < g.capacity; ++k) {
      if (!uses[k]) continue;
      const T* const row = x + k * g.width + at;
      for (std::int64_t c = 0; c < n; ++c) totals[c] += static_cast<double>(row[c]);
    }
    for (std::int64_t c = 0; c < n; ++c) y[at + c] = static_cast<T>(totals[c] / static_cast<double>(used));
  }
}

}  // namespace

template <class T>
void join_bags(const BagGeometry& g, const T* x, const std::int64_t* use, T* y) {
  parallel_for(g.bags, g.capacity * g.width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      const Uses uses{g, use, b};
      const T* const bag = x + b * g.capacity * g.width;
      T* const out = y + b * g.width;
      if (g.mode != BagMode::Max) {
        sum_bag(g, bag, uses, out);
        continue;
      }
      for (std::int64_t c = 0; c < g.width; ++c) {
        const std::int64_t k = largest(g, bag, uses, c);
        out[c] = k < 0 ? T{0} : bag[k * g.width + c];
      }
    }
  });
}

template <class T>
void spread_bags(const BagGeometry& g, const T* dy, const T* x, const std::int64_t* use, T* dx) {
  parallel_for(g.bags, g.capacity * g.width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      const Uses uses{g, use, b};
      const T* const from = dy + b * g.width;
      T* const bag = dx + b * g.capacity * g.width;
      const bool max = g.mode == BagMode::Max;
      const std::int64_t used = g.mode == BagMode::Mean ? std::max<std::int64_t>(uses.count(), 1) : 1;
      for (std::int64_t k = 0; k < g.capacity; ++k) {
        T* const row = bag + k * g.width;
        std::fill_n(row, g.width, T{0});
        if (max || !uses[k]) continue;
        for (std::int64_t c = 0; c < g.width; ++c)
          row[c] = static_cast<T>(static_cast<double>(from[c]) / static_cast<double>(used));
      }
      for (std::int64_t c = 0; max && c < g.width; ++c) {
        const std::int64_t k = largest(g, x + b * g.capacity * g.width, uses, c);
        if (k >= 0) bag[k * g.width + c] = from[c];
      }
    }
  });
}

template void join_bags<float>(const BagGeometry&, const float*, const std::int64_t*, float*);
template void join_bags<double>(const BagGeometry&, const double*, const std::int64_t*, double*);
template void spread_bags<float>(const BagGeometry&, const float*, const float*, const std::int64_t*, float*);
template void spread_bags<double>(const BagGeometry&, const double*, const double*, const std::int64_t*, double*);

}  // namespace lockstep::kernels::generic

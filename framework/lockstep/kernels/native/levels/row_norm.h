// The passes of layer norm and RMS norm over one row, for table.cpp.
#pragma once

#include "lockstep/kernels/native/levels/batch_norm.h"

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {

template <class T>
struct RowNorm {
  using Forward = typename RowNormTable<T>::Forward;
  using Backward = typename RowNormTable<T>::Backward;
  using Factors = typename RowNormTable<T>::Factors;

  static double total(const double* lanes) {
    double v[kLanes];
    for (int l = 0; l < kLanes; ++l) v[l] = lanes[l];
    for (int width = kLanes / 2; width > 0; width /= 2) {
      for (int l = 0; l < width; ++l) v[l] += v[l + width];
    }
    return v[0];
  }
  template <class Term>
  LOCKSTEP_INLINE static void row_sums(std::int64_t n, double* sums, Term term) {
    double lanes[2 * kLanes] = {};
    two_sums({.segment = n, .stride = n, .begin = 0, .end = n}, lanes, term);
    sums[0] = total(lanes);
    sums[1] = total(lanes + kLanes);
  }

  static void moments(std::int64_t n, const T* x, float pivot, double* sums) {
    const Lanes centre = broadcast(pivot);
    row_sums(n, sums, [=](auto position) {
      const Lanes d = position.load(x) - centre;
      return Pair{d, d * d};
    });
  }

  template <bool kWeight, bool kBias>
  LOCKSTEP_INLINE static void normalise_as(const Forward& f, float mean, float inverse) {
    const Lanes centre = broadcast(mean), scale = broadcast(inverse);
    for_positions(0, f.n, [=](auto position) {
      Lanes y = (position.load(f.x) - centre) * scale;
      if constexpr (kWeight) y = y * position.load(f.weight);
      if constexpr (kBias) y = y + position.load(f.bias);
      position.store(f.y, y);
    });
  }
  static void normalise(const Forward& f, float mean, float inverse) {
    if (f.bias) return normalise_as<true, true>(f, mean, inverse);
    f.weight ? normalise_as<true, false>(f, mean, inverse) : normalise_as<false, false>(f, mean, inverse);
  }

  template <bool kWeight, class Position>
  LOCKSTEP_INLINE static Lanes weighted(const Backward& b, Position position) {
    const Lanes dy = position.load(b.dy);
    if constexpr (kWeight) return dy * position.load(b.weight);
    return dy;
  }
  template <bool kWeight>
  LOCKSTEP_INLINE static void sums_as(const Backward& b, float mean, double* sums) {
    const Lanes centre = broadcast(mean);
    row_sums(b.n, sums, [=](auto position) {
      const Lanes a = weighted<kWeight>(b, position);
      return Pair{a, a * (position.load(b.x) - centre)};
    });
  }
  static void gradient_sums(const Backward& b, float mean, double* sums) {
    b.weight ? sums_as<true>(b, mean, sums) : sums_as<false>(b, mean, sums);
  }

  template <bool kWeight, bool kBias>
  LOCKSTEP_INLINE static void gradient_as(const Backward& b, const Factors& factors) {
    const Lanes centre = broadcast(factors.mean), scale = broadcast(factors.inverse);
    const Lanes by_x = broadcast(factors.x), constant = broadcast(factors.constant);
    for_positions(0, b.n, [=](auto position) {
      const Lanes centred = position.load(b.x) - centre, dy = position.load(b.dy);
      Lanes a = dy;
      if constexpr (kWeight) {
        a = dy * position.load(b.weight);
        position.store(b.dweight, position.load(b.dweight) + dy * (centred * scale));
      }
      if constexpr (kBias) position.store(b.dbias, position.load(b.dbias) + dy);
      position.store(b.dx, a * scale + (centred * by_x + constant));
    });
  }
  static void gradient(const Backward& b, const Factors& factors) {
    if (b.dbias) return gradient_as<true, true>(b, factors);
    b.weight ? gradient_as<true, false>(b, factors) : gradient_as<false, false>(b, factors);
  }

  static constexpr RowNormTable<T> table{moments, normalise, gradient_sums, gradient};
};

}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL

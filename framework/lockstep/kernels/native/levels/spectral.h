// Sums of products of spectra, for table.cpp. Nothing is fused, so the bits do not depend on the level.
#pragma once

#include "lockstep/kernels/native/levels/pointwise.h"

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {

// Returns the lanes of v that `lanes` names.
template <class V, class Lanes>
LOCKSTEP_INLINE V shuffled(V v, Lanes lanes) {
#if defined(__clang__)  // has no such builtin for masks that are not constants
  V result{};
  for (std::size_t l = 0; l < sizeof(V) / sizeof(v[0]); ++l) result[l] = v[lanes[l]];
  return result;
#else
  return __builtin_shuffle(v, lanes);
#endif
}

// Pairs of lanes hold a complex number.
template <class T, int Registers>
LOCKSTEP_INLINE void spectral_tile(const typename FourierTable<T>::Sum& s, std::int64_t at) {
  using V = typename NativeOf<T>::Type;
  constexpr int kWidth = static_cast<int>(sizeof(V) / sizeof(T));
  V sums[Registers]{}, sign_a{}, sign_b{};
  decltype(sign_a < sign_a) real{}, imaginary{}, swapped{};
  for (int l = 0; l < kWidth; ++l) {
    real[l] = l & ~1;
    imaginary[l] = l | 1;
    swapped[l] = l ^ 1;
    // a b = (ar br - ai bi, ar bi + ai br): ai times the swapped b has the signs -, +
    sign_a[l] = (l % 2 == 0) != s.conjugate_a ? T(-1) : T(1);
    sign_b[l] = l % 2 == 1 && s.conjugate_b ? T(-1) : T(1);
  }
  const T *a = s.a + at, *b = s.b + at;
  for (std::int64_t i = 0; i < s.terms; ++i, a += 2 * s.a_stride, b += 2 * s.b_stride) {
#pragma GCC unroll 4
    for (int r = 0; r < Registers; ++r) {
      const V u = load_native(a + r * kWidth), v = load_native(b + r * kWidth) * sign_b;
      const V straight = shuffled(u, real) * v;
      const V crossed = shuffled(u, imaginary) * sign_a * shuffled(v, swapped);
      sums[r] += straight + crossed;
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < Registers; ++r) store_native(s.y + at + r * kWidth, sums[r]);
}

template <class T>
void spectral_sum(const typename FourierTable<T>::Sum& s) {
  constexpr std::int64_t kWidth = sizeof(typename NativeOf<T>::Type) / sizeof(T);
  std::int64_t at = 0;
  for (; at + 4 * kWidth <= 2 * s.n; at += 4 * kWidth) spectral_tile<T, 4>(s, at);
  for (; at + kWidth <= 2 * s.n; at += kWidth) spectral_tile<T, 1>(s, at);
  for (; at < 2 * s.n; at += 2) {  // the same operations in the same order
    T re = 0, im = 0;
    for (std::int64_t i = 0; i < s.terms; ++i) {
      const T *a = s.a + at + 2 * i * s.a_stride, *b = s.b + at + 2 * i * s.b_stride;
      const T bi = b[1] * (s.conjugate_b ? T(-1) : T(1));
      re += a[0] * b[0] + a[1] * (s.conjugate_a ? T(1) : T(-1)) * bi;
      im += a[0] * bi + a[1] * (s.conjugate_a ? T(-1) : T(1)) * b[0];
    }
    s.y[at] = re;
    s.y[at + 1] = im;
  }
}

}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL

// What max pooling works on: maxima with their positions, the lanes of a block, and the taps of a window inside the
// image. Positions are counted in f32, which holds those of all windows that u8 can tell.
#pragma once

#include "lockstep/kernels/native/levels/lanes.h"

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {

constexpr float kLowest = -__builtin_inff();

LOCKSTEP_INLINE void take_larger(NativeF32& best, NativeF32& at, NativeF32 v, NativeF32 position) {
#if defined(__AVX512F__)
  const __mmask16 number = _mm512_cmp_ps_mask((__m512)v, (__m512)v, _CMP_ORD_Q);
  const __mmask16 stay = _mm512_mask_cmp_ps_mask(number, (__m512)v, (__m512)best, _CMP_NGT_UQ);
  best = (NativeF32)_mm512_mask_mov_ps((__m512)v, stay, (__m512)best);
  at = (NativeF32)_mm512_mask_mov_ps((__m512)position, stay, (__m512)at);
#else
  const auto larger = (v > best) | (v != v);
  best = larger ? v : best;
  at = larger ? position : at;
#endif
}
template <int N>
LOCKSTEP_INLINE void take_larger(Vector<N>& best, Vector<N>& at, Vector<N> v, float position) {
  if constexpr (N == kNative) {
    take_larger(best.value, at.value, v.value, NativeF32{} + position);
  } else {
    take_larger(best.low, at.low, v.low, position);
    take_larger(best.high, at.high, v.high, position);
  }
}

// The maxima of windows and their positions: of equal values the first, of values with a NaN the last NaN.
template <int N>
struct Maxima {
  Vector<N> value, at;

  LOCKSTEP_INLINE void take(Vector<N> v, float position) { take_larger(value, at, v, position); }
};

// A block's lanes; half a register where registers are wider.
template <int Block>
struct BlockLanes {
  static constexpr int kWidth = Block < kNative ? kNative : Block;
  template <class T>
  LOCKSTEP_INLINE static Vector<kWidth> load(const T* p) {
    if constexpr (Block < kNative) {
      return LOCKSTEP_LEVEL::load(p, Block);
    } else {
      return LOCKSTEP_LEVEL::load<Block>(p);
    }
  }
  template <class T>
  LOCKSTEP_INLINE static void store(T* p, Vector<kWidth> v) {
    if constexpr (Block < kNative) {
      LOCKSTEP_LEVEL::store(p, v, Block);
    } else {
      LOCKSTEP_LEVEL::store(p, v);
    }
  }
};

// The taps of a window along one dimension that are inside the image.
struct Taps {
  std::int64_t begin, end;
};
LOCKSTEP_INLINE Taps taps_inside(std::int64_t start, std::int64_t in, std::int64_t kernel, std::int64_t dilation) {
  Taps taps{0, kernel};
  if (start < 0) taps.begin = (-start + dilation - 1) / dilation;
  if (start + (kernel - 1) * dilation >= in) taps.end = start < in ? (in - start + dilation - 1) / dilation : 0;
  return taps.begin < taps.end ? taps : Taps{0, 0};
}

// Takes every other element of a and then of b; and the reverse.
template <int N>
LOCKSTEP_INLINE Vector<N> even(Vector<N> a, Vector<N> b) {
  if constexpr (N != kNative) {
    return {even(a.low, a.high), even(b.low, b.high)};
  } else if constexpr (N == 16) {
    return {__builtin_shufflevector(a.value, b.value, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)};
  } else if constexpr (N == 8) {
    return {__builtin_shufflevector(a.value, b.value, 0, 2, 4, 6, 8, 10, 12, 14)};
  } else {
    return {__builtin_shufflevector(a.value, b.value, 0, 2, 4, 6)};
  }
}

struct TwoLanes {
  Lanes first, second;
};
LOCKSTEP_INLINE TwoLanes zip(Lanes a, Lanes b) {
#if defined(__AVX512F__)
  return {{__builtin_shufflevector(a.value, b.value, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)},
          {__builtin_shufflevector(a.value, b.value, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)}};
#else
  float u[kLanes], v[kLanes], both[2 * kLanes];
  store(u, a);
  store(v, b);
  for (int l = 0; l < kLanes; ++l) {
    both[2 * l] = u[l];
    both[2 * l + 1] = v[l];
  }
  return {load(both), load(both + kLanes)};
#endif
}

}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL

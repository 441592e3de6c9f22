// Sixteen f32 lanes on whatever registers the level has (one of 16, two of 8, four of 4), with loads and stores of f32
// and bf16 arrays at any alignment, in GCC's vector types. A level's sources include this, tables.h and <cstdint>, and
// no other header of the library or the standard: an inline function compiled here could be the copy that the linker
// keeps for all levels, with instructions that not every machine has. For that reason everything here is local to the
// source, too. (The compiler's intrinsics are always inlined, so their header is safe; so are core/math_formulas.h and
// <utility>, whose functions are templates over a level's own types or constants of the compiler.)
#pragma once

#include <cstdint>

#include "lockstep/kernels/native/levels/registers.h"
#include "lockstep/kernels/native/tables.h"

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {

// Halves with names rather than an array: the compiler keeps them in registers without fail.
template <int N>
struct Vector {
  Vector<N / 2> low, high;
};
template <>
struct Vector<kNative> {
  NativeF32 value;
};
using Lanes = Vector<kLanes>;

template <int N, class F>
LOCKSTEP_INLINE Vector<N> each(F f, Vector<N> a) {
  if constexpr (N == kNative) {
    return {f(a.value)};
  } else {
    return {each(f, a.low), each(f, a.high)};
  }
}
template <int N, class F>
LOCKSTEP_INLINE Vector<N> each(F f, Vector<N> a, Vector<N> b) {
  if constexpr (N == kNative) {
    return {f(a.value, b.value)};
  } else {
    return {each(f, a.low, b.low), each(f, a.high, b.high)};
  }
}

template <int N, class F>
LOCKSTEP_INLINE Vector<N> each(F f, Vector<N> a, Vector<N> b, Vector<N> c) {
  if constexpr (N == kNative) {
    return {f(a.value, b.value, c.value)};
  } else {
    return {each(f, a.low, b.low, c.low), each(f, a.high, b.high, c.high)};
  }
}

template <int N>
LOCKSTEP_INLINE Vector<N> operator+(Vector<N> a, Vector<N> b) {
  return each([](NativeF32 u, NativeF32 v) { return u + v; }, a, b);
}
LOCKSTEP_INLINE Lanes operator-(Lanes a, Lanes b) {
  return each([](NativeF32 u, NativeF32 v) { return u - v; }, a, b);
}
LOCKSTEP_INLINE Lanes operator*(Lanes a, Lanes b) {
  return each([](NativeF32 u, NativeF32 v) { return u * v; }, a, b);
}
// 0 where x < 0; a NaN stays.
LOCKSTEP_INLINE Lanes relu(Lanes x) {
  return each([](NativeF32 u) { return u < 0 ? NativeF32{} : u; }, x);
}
// 0 where y <= 0, else d.
LOCKSTEP_INLINE Lanes gate(Lanes y, Lanes d) {
  return each([](NativeF32 u, NativeF32 v) { return u <= 0 ? NativeF32{} : v; }, y, d);
}

template <int N = kLanes>
LOCKSTEP_INLINE Vector<N> broadcast(float x) {
  if constexpr (N == kNative) {
    return {NativeF32{} + x};
  } else {
    return {broadcast<N / 2>(x), broadcast<N / 2>(x)};
  }
}

LOCKSTEP_INLINE NativeF32 load_native(const float* p) {
  NativeF32 v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
// One instruction, where GCC 12 makes four of a __builtin_convertvector (and warns of a plain _mm512_cvtepu16_epi32).
#if defined(__AVX512F__)
LOCKSTEP_INLINE NativeU32 widen(NativeU16 v) { return (NativeU32)_mm512_maskz_cvtepu16_epi32(0xffff, (__m256i)v); }
#elif defined(__AVX2__)
LOCKSTEP_INLINE NativeU32 widen(NativeU16 v) { return (NativeU32)_mm256_cvtepu16_epi32((__m128i)v); }
#else
LOCKSTEP_INLINE NativeU32 widen(NativeU16 v) { return __builtin_convertvector(v, NativeU32); }
#endif
LOCKSTEP_INLINE NativeF32 load_native(const Bf16* p) {
  NativeU16 half;
  __builtin_memcpy(&half, p, sizeof half);
  return (NativeF32)(widen(half) << 16);
}
LOCKSTEP_INLINE void store_native(float* p, NativeF32 v) { __builtin_memcpy(p, &v, sizeof v); }
LOCKSTEP_INLINE void store_native(Bf16* p, NativeF32 v) {
  const NativeU32 bits = (NativeU32)v;
  const NativeU32 rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const NativeU32 quiet = (bits >> 16) | 0x40;  // a NaN whose payload lies in the lower half must not become infinite
  const NativeU16 half = __builtin_convertvector((NativeU32)(v != v ? quiet : rounded), NativeU16);
  __builtin_memcpy(p, &half, sizeof half);
}

LOCKSTEP_INLINE NativeF32 load_native(const std::uint8_t* p) {
  NativeU8 bytes;
  __builtin_memcpy(&bytes, p, sizeof bytes);
#if defined(__AVX512F__)
  const auto numbers = (NativeU32)_mm512_maskz_cvtepu8_epi32(0xffff, (__m128i)bytes);
#else
  const NativeU32 numbers = __builtin_convertvector(bytes, NativeU32);
#endif
  return __builtin_convertvector(numbers, NativeF32);
}
// For integers below 256.
LOCKSTEP_INLINE void store_native(std::uint8_t* p, NativeF32 v) {
#if defined(__AVX512F__)
  const __m128i bytes = _mm512_maskz_cvtepi32_epi8(0xffff, (__m512i) __builtin_convertvector(v, NativeU32));
#else
  const NativeU8 bytes = __builtin_convertvector(__builtin_convertvector(v, NativeU32), NativeU8);
#endif
  __builtin_memcpy(p, &bytes, sizeof bytes);
}

template <int N = kLanes, class T>
LOCKSTEP_INLINE Vector<N> load(const T* p) {
  if constexpr (N == kNative) {
    return {load_native(p)};
  } else {
    return {load<N / 2>(p), load<N / 2>(p + N / 2)};
  }
}
template <int N, class T>
LOCKSTEP_INLINE void store(T* p, Vector<N> v) {
  if constexpr (N == kNative) {
    store_native(p, v.value);
  } else {
    store(p, v.low);
    store(p + N / 2, v.high);
  }
}

// The first `count` lanes, count <= 16; the others are 0, and are not touched in memory.
template <class T>
LOCKSTEP_INLINE Lanes load(const T* p, std::int64_t count) {
  T whole[kLanes] = {};
  for (std::int64_t l = 0; l < count; ++l) whole[l] = p[l];
  return load(whole);
}
template <class T>
LOCKSTEP_INLINE void store(T* p, Lanes v, std::int64_t count) {
  T whole[kLanes];
  store(whole, v);
  for (std::int64_t l = 0; l < count; ++l) p[l] = whole[l];
}

#if defined(__AVX512F__)
LOCKSTEP_INLINE __mmask16 first_lanes(std::int64_t count) { return static_cast<__mmask16>((1U << count) - 1); }
LOCKSTEP_INLINE Lanes load(const float* p, std::int64_t count) {
  return {(NativeF32)_mm512_maskz_loadu_ps(first_lanes(count), p)};
}
LOCKSTEP_INLINE Lanes load(const std::uint8_t* p, std::int64_t count) {
  const __m512i numbers = _mm512_maskz_cvtepu8_epi32(0xffff, _mm_maskz_loadu_epi8(first_lanes(count), p));
  return {__builtin_convertvector((NativeU32)numbers, NativeF32)};
}
LOCKSTEP_INLINE void store(float* p, Lanes v, std::int64_t count) {
  _mm512_mask_storeu_ps(p, first_lanes(count), (__m512)v.value);
}
LOCKSTEP_INLINE void store(std::uint8_t* p, Lanes v, std::int64_t count) {
  const __m512i numbers = (__m512i) __builtin_convertvector(v.value, NativeU32);
  _mm_mask_storeu_epi8(p, first_lanes(count), _mm512_maskz_cvtepi32_epi8(0xffff, numbers));
}
#endif

// The elements from index `at` on: sixteen, or fewer at the end of a run.
struct Whole {
  std::int64_t at;
  template <class T>
  LOCKSTEP_INLINE Lanes load(const T* p) const {
    return LOCKSTEP_LEVEL::load(p + at);
  }
  template <class T>
  LOCKSTEP_INLINE void store(T* p, Lanes v) const {
    LOCKSTEP_LEVEL::store(p + at, v);
  }
  LOCKSTEP_INLINE Lanes keep(Lanes v) const { return v; }
};
struct Part {
  std::int64_t at, count;
  template <class T>
  LOCKSTEP_INLINE Lanes load(const T* p) const {
    return LOCKSTEP_LEVEL::load(p + at, count);
  }
  template <class T>
  LOCKSTEP_INLINE void store(T* p, Lanes v) const {
    LOCKSTEP_LEVEL::store(p + at, v, count);
  }
  // 0 in the lanes that are not there.
  LOCKSTEP_INLINE Lanes keep(Lanes v) const {
    float whole[kLanes];
    LOCKSTEP_LEVEL::store(whole, v);
    return LOCKSTEP_LEVEL::load(whole, count);
  }
};

// Calls body(Whole or Part) for n elements from `at` on.
template <class Body>
LOCKSTEP_INLINE void for_positions(std::int64_t at, std::int64_t n, Body body) {
  const std::int64_t whole = at + n / kLanes * kLanes;
#pragma GCC unroll 4
  for (; at < whole; at += kLanes) body(Whole{at});
  if (n % kLanes != 0) body(Part{at, n % kLanes});
}

LOCKSTEP_INLINE void add_to(double* sums, Lanes v) {
  float lanes[kLanes];
  store(lanes, v);
  for (int l = 0; l < kLanes; ++l) sums[l] += static_cast<double>(lanes[l]);
}

// Additions to an f32 sum before it is folded into a double: few enough for its rounding to stay near that of one
// addition, enough for the folding to cost nothing.
constexpr std::int64_t kFold = 32;

}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL

// core/math_formulas.h on a level's vectors, for pointwise.h.
#pragma once

#include "lockstep/kernels/native/levels/lanes.h"

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {

using NativeF64 __attribute__((vector_size(kNative * 4))) = double;
constexpr int kNativeF64 = kNative / 2;

// a * b + c, rounded once at every level; without such an instruction a function of the C library does it.
#if defined(__AVX512F__)
LOCKSTEP_INLINE NativeF64 fused(NativeF64 a, NativeF64 b, NativeF64 c) {
  return (NativeF64)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}
#elif defined(__AVX2__)
LOCKSTEP_INLINE NativeF64 fused(NativeF64 a, NativeF64 b, NativeF64 c) {
  return (NativeF64)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}
#elif defined(__aarch64__)
LOCKSTEP_INLINE NativeF64 fused(NativeF64 a, NativeF64 b, NativeF64 c) {
  return (NativeF64)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
}
#else
LOCKSTEP_INLINE NativeF64 fused(NativeF64 a, NativeF64 b, NativeF64 c) {
  NativeF64 y;
  for (int l = 0; l < kNativeF64; ++l) y[l] = __builtin_fma(a[l], b[l], c[l]);
  return y;
}
#endif

#include "lockstep/core/math_formulas.h"

using formulas::Full;
using formulas::Short;

LOCKSTEP_INLINE NativeF64 load_native(const double* p) {
  NativeF64 v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
LOCKSTEP_INLINE void store_native(double* p, NativeF64 v) { __builtin_memcpy(p, &v, sizeof v); }

#if defined(__AVX512F__)
LOCKSTEP_INLINE NativeF32 root(NativeF32 x) { return (NativeF32)_mm512_maskz_sqrt_ps(0xffff, (__m512)x); }
LOCKSTEP_INLINE NativeF64 root(NativeF64 x) { return (NativeF64)_mm512_maskz_sqrt_pd(0xff, (__m512d)x); }
#elif defined(__AVX2__)
LOCKSTEP_INLINE NativeF32 root(NativeF32 x) { return (NativeF32)_mm256_sqrt_ps((__m256)x); }
LOCKSTEP_INLINE NativeF64 root(NativeF64 x) { return (NativeF64)_mm256_sqrt_pd((__m256d)x); }
#elif defined(__aarch64__)
LOCKSTEP_INLINE NativeF32 root(NativeF32 x) { return (NativeF32)vsqrtq_f32((float32x4_t)x); }
LOCKSTEP_INLINE NativeF64 root(NativeF64 x) { return (NativeF64)vsqrtq_f64((float64x2_t)x); }
#else
LOCKSTEP_INLINE NativeF32 root(NativeF32 x) {
  for (int l = 0; l < kNative; ++l) x[l] = __builtin_sqrtf(x[l]);
  return x;
}
LOCKSTEP_INLINE NativeF64 root(NativeF64 x) {
  for (int l = 0; l < kNativeF64; ++l) x[l] = __builtin_sqrt(x[l]);
  return x;
}
#endif

// f of doubles, for f32: in two halves.
template <class F, class... X>
LOCKSTEP_INLINE NativeF32 in_doubles(F f, X... x) {
  using Half __attribute__((vector_size(kNative * 2))) = float;
  const auto half = [](NativeF32 v, int i) {
    Half halves[2];
    __builtin_memcpy(halves, &v, sizeof v);
    return __builtin_convertvector(halves[i], NativeF64);
  };
  const Half halves[2] = {__builtin_convertvector(f(half(x, 0)...), Half),
                          __builtin_convertvector(f(half(x, 1)...), Half)};
  NativeF32 y;
  __builtin_memcpy(&y, halves, sizeof y);
  return y;
}

}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL

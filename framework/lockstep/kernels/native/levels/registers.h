// The registers of a level as GCC's vector types, and the operations for which each level has its own instructions. For
// lanes.h, which says what a source of a level may include.
#pragma once

#include <cstdint>

#if defined(__AVX2__) && !defined(__FMA__)
#error "compile with -mfma where -mavx2 is given: every processor with AVX2 has it"
#endif
#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define LOCKSTEP_INLINE [[gnu::always_inline]] inline

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {

#if defined(__AVX512F__)
constexpr int kNative = 16;
#elif defined(__AVX2__)
constexpr int kNative = 8;
#else
constexpr int kNative = 4;
#endif
// Vector registers, which bound the tiles of sums.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int kRegisters = 32;
#else
constexpr int kRegisters = 16;
#endif

using NativeF32 __attribute__((vector_size(kNative * 4))) = float;
using NativeU32 __attribute__((vector_size(kNative * 4))) = std::uint32_t;
using NativeU16 __attribute__((vector_size(kNative * 2))) = std::uint16_t;
using NativeU8 __attribute__((vector_size(kNative))) = std::uint8_t;

// In one instruction, where GCC 12 makes two of NativeF32{} + *p; and a value that is to be loaded once for all its
// uses, where GCC 12 would load it again in each.
#if defined(__AVX512F__)
LOCKSTEP_INLINE NativeF32 broadcast_native(const float* p) { return (NativeF32)_mm512_set1_ps(*p); }
LOCKSTEP_INLINE void keep_in_register(NativeF32& v) { asm("" : "+v"(v)); }
#elif defined(__AVX2__)
LOCKSTEP_INLINE NativeF32 broadcast_native(const float* p) { return (NativeF32)_mm256_broadcast_ss(p); }
LOCKSTEP_INLINE void keep_in_register(NativeF32& v) { asm("" : "+x"(v)); }
#elif defined(__aarch64__)
LOCKSTEP_INLINE NativeF32 broadcast_native(const float* p) { return (NativeF32)vld1q_dup_f32(p); }
LOCKSTEP_INLINE void keep_in_register(NativeF32& v) { asm("" : "+w"(v)); }
#else
LOCKSTEP_INLINE NativeF32 broadcast_native(const float* p) { return NativeF32{} + *p; }
LOCKSTEP_INLINE void keep_in_register(NativeF32&) {}
#endif

// a * b + c, rounded once at every level.
#if defined(__AVX512F__)
LOCKSTEP_INLINE NativeF32 multiply_add(NativeF32 a, NativeF32 b, NativeF32 c) {
  return (NativeF32)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
#elif defined(__AVX2__)
LOCKSTEP_INLINE NativeF32 multiply_add(NativeF32 a, NativeF32 b, NativeF32 c) {
  return (NativeF32)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
#elif defined(__aarch64__)
LOCKSTEP_INLINE NativeF32 multiply_add(NativeF32 a, NativeF32 b, NativeF32 c) {
  return (NativeF32)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
#elif defined(__FP_FAST_FMAF)
LOCKSTEP_INLINE NativeF32 multiply_add(NativeF32 a, NativeF32 b, NativeF32 c) {
  for (int l = 0; l < kNative; ++l) c[l] = __builtin_fmaf(a[l], b[l], c[l]);
  return c;
}
#else
using PartF32 __attribute__((vector_size(8))) = float;
using PartF64 __attribute__((vector_size(16))) = double;
using PartI64 __attribute__((vector_size(16))) = std::int64_t;

// Two of the four lanes, as f64.
LOCKSTEP_INLINE PartF64 part(NativeF32 v, int i) {
  PartF32 parts[2];
  __builtin_memcpy(parts, &v, sizeof v);
  return __builtin_convertvector(parts[i], PartF64);
}
LOCKSTEP_INLINE NativeF32 rounded(PartF64 low, PartF64 high) {
  const PartF32 parts[2] = {__builtin_convertvector(low, PartF32), __builtin_convertvector(high, PartF32)};
  NativeF32 y;
  __builtin_memcpy(&y, parts, sizeof y);
  return y;
}

// The sum is rounded to odd, so that rounding it once more, to f32, rounds the exact sum (Boldo and Melquiond,
// "Emulation of FMA and correctly rounded sums", 2008).
LOCKSTEP_INLINE PartF64 sum_to_odd(PartF64 product, PartF64 term) {
  const PartF64 sum = product + term, back = sum - product, error = (product - (sum - back)) + (term - back);
  const PartI64 inexact = (error > 0) | (error < 0), even = ((PartI64)sum & 1) == 0;
  const PartI64 outwards = (error > 0) == (sum > 0);
  const PartI64 step = outwards ? PartI64{} + 1 : PartI64{} - 1;
  return (PartF64)((PartI64)sum + (step & inexact & even));
}
[[gnu::noinline, gnu::cold]] NativeF32 multiply_add_to_odd(NativeF32 a, NativeF32 b, NativeF32 c) {
  return rounded(sum_to_odd(part(a, 0) * part(b, 0), part(c, 0)), sum_to_odd(part(a, 1) * part(b, 1), part(c, 1)));
}

// In f64 the product is exact. Rounding the sum twice, to f64 and to f32, differs from rounding it once only where the
// f64 is in the middle between two f32 numbers: its last 29 bits are 1 and zeros, or it is below the normal f32
// numbers.
LOCKSTEP_INLINE NativeF32 multiply_add(NativeF32 a, NativeF32 b, NativeF32 c) {
  static_assert(kNative == 4 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
                "parts are halves, the last bits come first");
  const PartF64 low = part(a, 0) * part(b, 0) + part(c, 0), high = part(a, 1) * part(b, 1) + part(c, 1);
  const NativeU32 last = __builtin_shufflevector((NativeU32)low, (NativeU32)high, 0, 2, 4, 6);
  const NativeU32 first = __builtin_shufflevector((NativeU32)low, (NativeU32)high, 1, 3, 5, 7);
  const NativeU32 middle = (NativeU32)((last & 0x1fffffff) == 0x10000000);
  const NativeU32 subnormal = (NativeU32)((first & 0x7fffffff) - 1 < 0x38100000 - 1);  // not 0
  const auto doubtful = (PartI64)(middle | subnormal);
  if (__builtin_expect((doubtful[0] | doubtful[1]) != 0, 0)) return multiply_add_to_odd(a, b, c);
  return rounded(low, high);
}
#endif

}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL

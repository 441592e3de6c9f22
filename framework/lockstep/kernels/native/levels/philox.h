// Philox4x32-10 of core/random.h on a level's vectors: a lane is one counter.
#pragma once

#include "lockstep/kernels/native/levels/lanes.h"

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {

using NativeU64 __attribute__((vector_size(kNative * 4))) = std::uint64_t;

// The products of the even lanes, the lower halves of 64 bits.
#if defined(__AVX512F__)
LOCKSTEP_INLINE NativeU64 multiply_even(NativeU64 a, NativeU64 b) {
  return (NativeU64)_mm512_maskz_mul_epu32(0xff, (__m512i)a, (__m512i)b);
}
#elif defined(__AVX2__)
LOCKSTEP_INLINE NativeU64 multiply_even(NativeU64 a, NativeU64 b) {
  return (NativeU64)_mm256_mul_epu32((__m256i)a, (__m256i)b);
}
#else
LOCKSTEP_INLINE NativeU64 multiply_even(NativeU64 a, NativeU64 b) { return (a & 0xffffffffU) * (b & 0xffffffffU); }
#endif

struct WideProduct {
  NativeU32 high, low;
};
LOCKSTEP_INLINE WideProduct multiply_wide(NativeU32 x, std::uint32_t factor) {
  const NativeU64 a = (NativeU64)x, b = NativeU64{} + factor, upper = NativeU64{} + 0xffffffff00000000U;
  const NativeU64 even = multiply_even(a, b), odd = multiply_even(a >> 32, b);
  return {(NativeU32)((even >> 32) | (odd & upper)), (NativeU32)((even & ~upper) | (odd << 32))};
}

LOCKSTEP_INLINE void philox(std::uint64_t key, NativeU32* c) {
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const WideProduct p0 = multiply_wide(c[0], 0xD2511F53U), p1 = multiply_wide(c[2], 0xCD9E8D57U);
    c[0] = p1.high ^ c[1] ^ k0;
    c[1] = p1.low;
    c[2] = p0.high ^ c[3] ^ k1;
    c[3] = p0.low;
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
}

}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL

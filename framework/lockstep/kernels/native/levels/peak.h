// Multiply-adds on registers alone, for table.cpp: more independent chains than a core needs to hide their latency, and
// few enough for sixteen registers.
#pragma once

#include "lockstep/kernels/native/levels/lanes.h"

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {

constexpr int kChains = 12;

std::int64_t peak_f32(std::int64_t rounds, float* out) {
  NativeF32 chains[kChains];
  for (int c = 0; c < kChains; ++c) chains[c] = NativeF32{} + static_cast<float>(c);  // equal ones would be one
  const NativeF32 factor = NativeF32{} + 0.5F, term = NativeF32{} + 1.0F;
  for (std::int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (NativeF32& chain : chains) chain = multiply_add(chain, factor, term);
  }
  for (int c = 1; c < kChains; ++c) chains[0] += chains[c];
  store_native(out, chains[0]);
  return rounds * kChains * kNative * 2;
}

#if defined(__AVX512F__)
// A separate function, as its instructions do not belong to the level.
[[gnu::target("avx512bf16")]] void dot_bf16(std::int64_t rounds, float* out) {
  __m512 chains[kChains];
  for (int c = 0; c < kChains; ++c) chains[c] = _mm512_set1_ps(static_cast<float>(c));
  const __m512bh one = (__m512bh)_mm512_set1_epi16(0x3f80);
  for (std::int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (__m512& chain : chains) chain = _mm512_dpbf16_ps(chain, one, one);
  }
  for (int c = 1; c < kChains; ++c) chains[0] = _mm512_add_ps(chains[0], chains[c]);
  store_native(out, (NativeF32)chains[0]);
}
std::int64_t peak_bf16(std::int64_t rounds, float* out) {
  if (!__builtin_cpu_supports("avx512bf16")) return 0;
  dot_bf16(rounds, out);
  return rounds * kChains * kNative * 4;
}
#else
std::int64_t peak_bf16(std::int64_t, float*) { return 0; }
#endif

}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL

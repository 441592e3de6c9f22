// Products of a few rows with a panel of a packed matrix, for recurrent.h: tiles of rows and columns stay in registers
// while the sum runs. Lanes are columns, so the bits of a result depend neither on the level nor on how rows are
// divided.
#pragma once

#include "lockstep/kernels/native/levels/convolution.h"
#include "lockstep/kernels/native/levels/pointwise.h"

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {

constexpr int kMostSums = kRegisters * 3 / 4;  // of a tile
template <class T>
constexpr int kWidth = sizeof(typename NativeOf<T>::Type) / sizeof(T);

LOCKSTEP_INLINE NativeF64 multiply_add(NativeF64 a, NativeF64 b, NativeF64 c) { return fused(a, b, c); }
#if defined(__AVX512F__)
LOCKSTEP_INLINE NativeF64 broadcast_native(const double* p) { return (NativeF64)_mm512_set1_pd(*p); }
LOCKSTEP_INLINE void keep_in_register(NativeF64& v) { asm("" : "+v"(v)); }
#elif defined(__AVX2__)
LOCKSTEP_INLINE NativeF64 broadcast_native(const double* p) { return (NativeF64)_mm256_broadcast_sd(p); }
LOCKSTEP_INLINE void keep_in_register(NativeF64& v) { asm("" : "+x"(v)); }
#elif defined(__aarch64__)
LOCKSTEP_INLINE NativeF64 broadcast_native(const double* p) { return (NativeF64)vld1q_dup_f64(p); }
LOCKSTEP_INLINE void keep_in_register(NativeF64& v) { asm("" : "+w"(v)); }
#else
LOCKSTEP_INLINE NativeF64 broadcast_native(const double* p) { return NativeF64{} + *p; }
LOCKSTEP_INLINE void keep_in_register(NativeF64&) {}
#endif

// One register's lanes of each vector, see add_product.
template <class T, int Rows, int Vectors>
[[gnu::noinline]] void product_tile(std::int64_t depth, const T* a, std::int64_t a_stride, const T* b, T* sums) {
  using V = typename NativeOf<T>::Type;
  V total[Rows][Vectors];
#pragma GCC unroll 12
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) total[r][v] = load_native(sums + (r * Vectors + v) * kLanes);
  }
  for (std::int64_t k = 0; k < depth; ++k, b += Vectors * kLanes) {
    if constexpr (Rows >= Vectors) {  // the fewer stay in registers
      V column[Vectors];
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) column[v] = load_native(b + v * kLanes);
#pragma GCC unroll 12
      for (int r = 0; r < Rows; ++r) {
        V value = broadcast_native(a + r * a_stride + k);
        keep_in_register(value);
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) total[r][v] = multiply_add(value, column[v], total[r][v]);
      }
    } else {
      V value[Rows];
#pragma GCC unroll 12
      for (int r = 0; r < Rows; ++r) {
        value[r] = broadcast_native(a + r * a_stride + k);
        keep_in_register(value[r]);
      }
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) {
        V column = load_native(b + v * kLanes);
        keep_in_register(column);
#pragma GCC unroll 12
        for (int r = 0; r < Rows; ++r) total[r][v] = multiply_add(value[r], column, total[r][v]);
      }
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) store_native(sums + (r * Vectors + v) * kLanes, total[r][v]);
  }
}

// sums [rows][Vectors][kLanes] += a [rows][depth] b [depth][Vectors][kLanes], in order of `depth` by fused
// multiply-adds; rows of a are a_stride apart, at most kMostSums / Vectors.
template <int Vectors, class T>
void add_product(std::int64_t rows, std::int64_t depth, const T* a, std::int64_t a_stride, const T* b, T* sums) {
  with_number<kMostSums / Vectors>(rows, [=](auto number) {
    for (int at = 0; at < kLanes; at += kWidth<T>)
      product_tile<T, number.value, Vectors>(depth, a, a_stride, b + at, sums + at);
  });
}

}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL

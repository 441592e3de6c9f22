// Products of a few rows with a packed matrix, for table.cpp: tiles of rows and columns stay in registers while the sum
// runs. Lanes are columns, so the bits of a result depend neither on the level nor on how rows are divided.
#pragma once

#include "lockstep/kernels/native/levels/convolution.h"
#include "lockstep/kernels/native/levels/pointwise.h"

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {

constexpr int kProductTile = 2;  // registers of a tile along the columns
#if defined(__AVX512F__)
constexpr int kMostRows = 8;  // of a tile: 16 sums of 32 registers
#else
constexpr int kMostRows = 6;  // 12 of 16
#endif

LOCKSTEP_INLINE NativeF64 multiply_add(NativeF64 a, NativeF64 b, NativeF64 c) { return fused(a, b, c); }
#if defined(__AVX512F__)
LOCKSTEP_INLINE NativeF64 broadcast_native(const double* p) { return (NativeF64)_mm512_set1_pd(*p); }
LOCKSTEP_INLINE void keep_in_register(NativeF64& v) { asm("" : "+v"(v)); }
#elif defined(__AVX2__)
LOCKSTEP_INLINE NativeF64 broadcast_native(const double* p) { return (NativeF64)_mm256_broadcast_sd(p); }
LOCKSTEP_INLINE void keep_in_register(NativeF64& v) { asm("" : "+x"(v)); }
#else
LOCKSTEP_INLINE NativeF64 broadcast_native(const double* p) { return NativeF64{} + *p; }
LOCKSTEP_INLINE void keep_in_register(NativeF64&) {}
#endif

template <class T, bool Add, int Rows>
[[gnu::noinline]] void product_tile(std::int64_t depth, const T* a, std::int64_t a_stride, const T* b, T* c,
                                    std::int64_t c_stride) {
  using V = typename NativeOf<T>::Type;
  constexpr int kWidth = static_cast<int>(sizeof(V) / sizeof(T));
  V sums[Rows][kProductTile];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 2
    for (int t = 0; t < kProductTile; ++t) sums[r][t] = Add ? load_native(c + r * c_stride + t * kWidth) : V{};
  }
  for (std::int64_t k = 0; k < depth; ++k, b += kPanel) {
    V column[kProductTile];
#pragma GCC unroll 2
    for (int t = 0; t < kProductTile; ++t) column[t] = load_native(b + t * kWidth);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      V value = broadcast_native(a + r * a_stride + k);
      keep_in_register(value);
#pragma GCC unroll 2
      for (int t = 0; t < kProductTile; ++t) sums[r][t] = multiply_add(value, column[t], sums[r][t]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 2
    for (int t = 0; t < kProductTile; ++t) store_native(c + r * c_stride + t * kWidth, sums[r][t]);
  }
}

template <class T, bool Add>
void packed_product(const typename ProductTable<T>::Rows& p) {
  constexpr int kColumns = kProductTile * static_cast<int>(sizeof(typename NativeOf<T>::Type) / sizeof(T));
  static_assert(kPanel % kColumns == 0);
  for (std::int64_t panel = 0; panel < p.panels; ++panel) {
    const T* b = p.b + panel * p.depth * kPanel;
    in_blocks<kMostRows>(p.rows, [&p, panel, b](std::int64_t row, auto rows) {
      T* c = p.c + row * p.c_stride + panel * kPanel;
      for (int at = 0; at < kPanel; at += kColumns)
        product_tile<T, Add, rows.value>(p.depth, p.a + row * p.a_stride, p.a_stride, b + at, c + at, p.c_stride);
    });
  }
}

}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL

// Matrices on their way into the blocks of a product and out of them, for matrix.h.
#pragma once

#include "lockstep/kernels/native/levels/attention_memory.h"
#include "lockstep/kernels/native/levels/product.h"

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {

template <class T>
struct MatrixMemory {
  using V = typename NativeOf<T>::Type;
  using Copy = typename MatrixTable<T>::Copy;
  static constexpr int kW = kWidth<T>;
  static constexpr std::int64_t kPanel = MatrixTable<T>::kPanel;

  static void transpose(const Copy& m) { transpose_as<false>(m); }
  static void transpose_exactly(const Copy& m) { transpose_as<true>(m); }

  static void copy_panels(const Copy& m) {
    for (std::int64_t r = 0; r < m.rows; ++r) {
      const T* from = m.from + r * m.from_stride;
      T* to = m.to + r * kPanel;
      std::int64_t c = 0;
      for (; c + kPanel <= m.columns; c += kPanel, to += m.rows * kPanel) {
#pragma GCC unroll 8
        for (std::int64_t l = 0; l < kPanel; l += kW) store_native(to + l, load_native(from + c + l));
      }
      if (c == m.columns) continue;
      for (std::int64_t l = 0; l < kPanel; l += kW) store_native(to + l, load_some(from + c + l, m.columns - c - l));
    }
  }

  static void column_sums(const Copy& m, double* sums) {
    for (std::int64_t c = 0; c < m.columns; c += kLanes) {
      if (c + kLanes > m.columns) {
        for (std::int64_t r = 0; r < m.rows; ++r) {
          for (std::int64_t l = c; l < m.columns; ++l) sums[l] += static_cast<double>(m.from[r * m.from_stride + l]);
        }
        break;
      }
      NativeF64 total[kLanes / kNativeF64];
#pragma GCC unroll 8
      for (int i = 0; i < kLanes / kNativeF64; ++i) total[i] = load_native(sums + c + i * kNativeF64);
      for (std::int64_t r = 0; r < m.rows; ++r) {
#pragma GCC unroll 8
        for (int i = 0; i < kLanes / kNativeF64; ++i) total[i] += wide(m.from + r * m.from_stride + c + i * kNativeF64);
      }
#pragma GCC unroll 8
      for (int i = 0; i < kLanes / kNativeF64; ++i) store_native(sums + c + i * kNativeF64, total[i]);
    }
  }

  LOCKSTEP_INLINE static NativeF64 wide(const double* p) { return load_native(p); }
  LOCKSTEP_INLINE static NativeF64 wide(const float* p) {
    using Half __attribute__((vector_size(kNative * 2))) = float;
    Half half;
    __builtin_memcpy(&half, p, sizeof half);
    return __builtin_convertvector(half, NativeF64);
  }
  LOCKSTEP_INLINE static V load_some(const T* p, std::int64_t count) {
    if (count >= kW) return load_native(p);
    T some[kW] = {};
    for (std::int64_t l = 0; l < count; ++l) some[l] = p[l];
    return load_native(some);
  }
  LOCKSTEP_INLINE static void store_some(T* p, V v, std::int64_t count) {
    if (count >= kW) return store_native(p, v);
    T some[kW];
    store_native(some, v);
    for (std::int64_t l = 0; l < count; ++l) p[l] = some[l];
  }
  LOCKSTEP_INLINE static void copy_some(const T* from, T* to, std::int64_t count) {
    for (std::int64_t at = 0; at < count; at += kW) store_some(to + at, load_some(from + at, count - at), count - at);
  }

  // Squares of registers; without `Exact` a square's lanes that have no row are written, as 0.
  template <bool Exact>
  [[gnu::noinline]] static void transpose_as(const Copy& m) {
    if constexpr (sizeof(T) == sizeof(float)) {
      for (std::int64_t first = 0; first < m.rows; first += kNative) {
        const std::int64_t rows_here = m.rows - first < kNative ? m.rows - first : kNative;
        for (std::int64_t c = 0; c < m.columns; c += kNative) {
          const std::int64_t count = m.columns - c < kNative ? m.columns - c : kNative;
          square<Exact>(m.from + first * m.from_stride + c, m.from_stride, m.to + c * m.to_stride + first, m.to_stride,
                        rows_here, count);
        }
      }
      if (!Exact) zeros_behind(m, (m.rows + kNative - 1) / kNative * kNative);
    } else {
      for (std::int64_t c = 0; c < m.columns; ++c) {
        for (std::int64_t r = 0; r < m.rows; ++r) m.to[c * m.to_stride + r] = m.from[r * m.from_stride + c];
      }
      if (!Exact) zeros_behind(m, m.rows);
    }
  }
  static void zeros_behind(const Copy& m, std::int64_t first) {
    for (std::int64_t c = 0; c < m.columns; ++c) {
      for (std::int64_t r = first; r % kLanes != 0; ++r) m.to[c * m.to_stride + r] = 0;
    }
  }
  template <bool Exact>
  LOCKSTEP_INLINE static void square(const float* from, std::int64_t from_stride, float* to, std::int64_t to_stride,
                                     std::int64_t rows, std::int64_t columns) {
    NativeF32 registers[kNative];
    if (rows == kNative && columns == kNative) {
#pragma GCC unroll 16
      for (int i = 0; i < kNative; ++i) registers[i] = load_native(from + i * from_stride);
      transpose_square(registers);
#pragma GCC unroll 16
      for (int i = 0; i < kNative; ++i) store_native(to + i * to_stride, registers[i]);
      return;
    }
    for (int i = 0; i < kNative; ++i) registers[i] = i < rows ? some(from + i * from_stride, columns) : NativeF32{};
    transpose_square(registers);
    for (int i = 0; i < columns; ++i) {
      if (Exact) {
        put_some(to + i * to_stride, registers[i], rows);
      } else {
        store_native(to + i * to_stride, registers[i]);
      }
    }
  }
#if defined(__AVX512F__)
  LOCKSTEP_INLINE static NativeF32 some(const float* p, std::int64_t count) {
    return (NativeF32)_mm512_maskz_loadu_ps(first_lanes(count), p);
  }
  LOCKSTEP_INLINE static void put_some(float* p, NativeF32 v, std::int64_t count) {
    _mm512_mask_storeu_ps(p, first_lanes(count), (__m512)v);
  }
#else
  LOCKSTEP_INLINE static NativeF32 some(const float* p, std::int64_t count) { return load_some(p, count); }
  LOCKSTEP_INLINE static void put_some(float* p, NativeF32 v, std::int64_t count) { store_some(p, v, count); }
#endif
};

}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL

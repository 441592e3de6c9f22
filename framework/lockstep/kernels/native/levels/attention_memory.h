// Rows of heads into the lanes of attention and back, for table.cpp: registers are transposed in squares.
#pragma once

#include <utility>

#include "lockstep/kernels/native/levels/lanes.h"

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {

// Which element of two registers, the second's counted from kNative on, lane l of the result of a step of the
// transposition is: squares of `Width` are exchanged.
template <int Width, bool Second>
constexpr int exchanged_lane(int l) {
  if (Second) return (l & Width) != 0 ? kNative + l : l + Width;
  return (l & Width) != 0 ? kNative + l - Width : l;
}

template <int Width, bool Second, int... Lanes>
LOCKSTEP_INLINE NativeF32 exchanged(NativeF32 a, NativeF32 b, std::integer_sequence<int, Lanes...>) {
  return __builtin_shufflevector(a, b, exchanged_lane<Width, Second>(Lanes)...);
}

template <int Width>
LOCKSTEP_INLINE void exchange(NativeF32* rows) {
  constexpr std::make_integer_sequence<int, kNative> kLaneNumbers;
#pragma GCC unroll 16
  for (int i = 0; i < kNative; ++i) {
    if (i & Width) continue;
    const NativeF32 a = rows[i], b = rows[i + Width];
    rows[i] = exchanged<Width, false>(a, b, kLaneNumbers);
    rows[i + Width] = exchanged<Width, true>(a, b, kLaneNumbers);
  }
}

LOCKSTEP_INLINE void transpose_square(NativeF32* rows) {
  if constexpr (kNative > 8) exchange<8>(rows);
  if constexpr (kNative > 4) exchange<4>(rows);
  exchange<2>(rows);
  exchange<1>(rows);
}

template <class T>
struct AttentionCopies {
  using In = typename AttentionMemory<T>::In;
  using Out = typename AttentionMemory<T>::Out;

  LOCKSTEP_INLINE static float element(const float* p) { return *p; }
  LOCKSTEP_INLINE static float element(const Bf16* p) {
    const std::uint32_t bits = static_cast<std::uint32_t>(*p) << 16;
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
  }
  // Up to a register of elements; the rest is 0.
  LOCKSTEP_INLINE static NativeF32 load_some(const T* p, std::int64_t count) {
    if (count >= kNative) return load_native(p);
    float some[kNative] = {};
    for (std::int64_t l = 0; l < count; ++l) some[l] = element(p + l);
    return load_native(some);
  }
  LOCKSTEP_INLINE static void store_some(T* p, NativeF32 v, std::int64_t count) {
    if (count >= kNative) return store_native(p, v);
    T some[kNative];
    store_native(some, v);
    for (std::int64_t l = 0; l < count; ++l) p[l] = some[l];
  }

  static void transpose_in(const In& in) {
    const NativeF32 scale = NativeF32{} + in.scale;
    for (std::int64_t first = 0; first < kPanel; first += kNative) {
      for (std::int64_t c = 0; c < in.columns; c += kNative) {
        NativeF32 rows[kNative];
#pragma GCC unroll 16
        for (int i = 0; i < kNative; ++i) {
          rows[i] = NativeF32{};
          if (first + i < in.rows)
            rows[i] = load_some(in.from + (first + i) * in.from_stride + c, in.columns - c) * scale;
        }
        transpose_square(rows);
        const std::int64_t count = in.columns - c < kNative ? in.columns - c : kNative;
        for (std::int64_t i = 0; i < count; ++i) store_native(in.to + (c + i) * in.to_stride + first, rows[i]);
      }
    }
  }

  static void transpose_out(const Out& out) {
    for (std::int64_t first = 0; first < out.rows; first += kNative) {
      const NativeF32 factors = load_native(out.factors + first);
      const std::int64_t rows_here = out.rows - first < kNative ? out.rows - first : kNative;
      for (std::int64_t c = 0; c < out.columns; c += kNative) {
        NativeF32 rows[kNative];
#pragma GCC unroll 16
        for (int i = 0; i < kNative; ++i) {
          rows[i] = NativeF32{};
          if (c + i < out.columns) rows[i] = load_native(out.from + (c + i) * kPanel + first) * factors;
        }
        transpose_square(rows);
        for (std::int64_t i = 0; i < rows_here; ++i)
          store_some(out.to + (first + i) * out.to_stride + c, rows[i], out.columns - c);
      }
    }
  }

  // Row r, columns from c on go to to(r, c).
  template <class To>
  LOCKSTEP_INLINE static void copy(const In& in, To to) {
    const NativeF32 scale = NativeF32{} + in.scale;
    for (std::int64_t r = 0; r < in.rows; ++r) {
      for (std::int64_t c = 0; c < in.columns; c += kNative)
        store_native(to(r, c), load_some(in.from + r * in.from_stride + c, in.columns - c) * scale);
      for (std::int64_t c = (in.columns + kNative - 1) / kNative * kNative; c % kPanel != 0; c += kNative)
        store_native(to(r, c), NativeF32{});
    }
  }
  static void copy_in(const In& in) {
    copy(in, [&in](std::int64_t r, std::int64_t c) { return in.to + r * in.to_stride + c; });
  }
  static void copy_panels(const In& in) {
    copy(in,
         [&in](std::int64_t r, std::int64_t c) { return in.to + (c / kPanel * in.rows + r) * kPanel + c % kPanel; });
  }
  static void copy_out(std::int64_t rows, std::int64_t columns, const float* from, std::int64_t from_stride, T* to,
                       std::int64_t to_stride) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; c += kNative)
        store_some(to + r * to_stride + c, load_native(from + r * from_stride + c), columns - c);
    }
  }

  static constexpr AttentionMemory<T> table{transpose_in, transpose_out, copy_in, copy_panels, copy_out};
};

}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL

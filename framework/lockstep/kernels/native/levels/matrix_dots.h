// Products of few rows with the rows of a matrix as they lie, for matrix.h: sums run along the lanes, in sixteen parts
// at every level.
#pragma once

#include "lockstep/kernels/native/levels/matrix_memory.h"

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {

#if defined(__AVX512F__)
constexpr int kDotRows = 4;  // rows of a whose sums run side by side
#else
constexpr int kDotRows = 1;
#endif
constexpr int kDotGroup = 4;  // rows of b whose sums run side by side

template <class T>
struct MatrixDots : private MatrixMemory<T> {
  using V = typename NativeOf<T>::Type;
  using Dots = typename MatrixTable<T>::Dots;
  using MatrixMemory<T>::kW;
  using MatrixMemory<T>::load_some;

  static void dots(const Dots& m) {
    in_groups(m.count, [&m](std::int64_t first, auto group) {
      in_blocks<kDotRows>(m.rows, [&m, first, group](std::int64_t row, auto rows) {
        dot_tile<rows.value, group.value>(m, row, first);
      });
    });
  }

 private:
  // Calls body(first, number) for whole groups of kDotGroup, then for single rows.
  template <class Body>
  LOCKSTEP_INLINE static void in_groups(std::int64_t n, Body body) {
    std::int64_t at = 0;
    for (; at + kDotGroup <= n; at += kDotGroup) body(at, Number<kDotGroup>{});
    for (; at < n; ++at) body(at, Number<1>{});
  }

  template <int Rows, int Group>
  [[gnu::noinline]] static void dot_tile(const Dots& m, std::int64_t row, std::int64_t first) {
    constexpr int kParts = kLanes / kW;  // registers of the sixteen partial sums
    V sums[Rows][Group][kParts];
#pragma GCC unroll 16
    for (int i = 0; i < Rows * Group * kParts; ++i) (&sums[0][0][0])[i] = V{};
    const T *a = m.a + row * m.a_stride, *b = m.b + first * m.b_stride;
    const auto add = [&](auto load) {
#pragma GCC unroll 4
      for (int p = 0; p < kParts; ++p) {
        V left[Rows];
#pragma GCC unroll 4
        for (int r = 0; r < Rows; ++r) left[r] = load(a + r * m.a_stride, p);
#pragma GCC unroll 4
        for (int g = 0; g < Group; ++g) {
          const V right = load(b + g * m.b_stride, p);
#pragma GCC unroll 4
          for (int r = 0; r < Rows; ++r) sums[r][g][p] = multiply_add(left[r], right, sums[r][g][p]);
        }
      }
    };
    std::int64_t k = 0;
    for (; k + kLanes <= m.depth; k += kLanes) add([k](const T* x, int p) { return load_native(x + k + p * kW); });
    if (k < m.depth) {
      add([k, &m](const T* x, int p) { return load_some(x + k + p * kW, m.depth - k - p * kW); });
    }
    T totals[Rows * Group];
    if constexpr (kParts == 1 && Rows * Group == kLanes && sizeof(T) == sizeof(float)) {
      fold<kNative / 2>(&sums[0][0][0]);
      store_native(totals, sums[0][0][0]);
    } else {
#pragma GCC unroll 16
      for (int i = 0; i < Rows * Group; ++i) totals[i] = total((&sums[0][0][0]) + i * kParts);
    }
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
      for (int g = 0; g < Group; ++g) {
        T y = m.bias != nullptr ? totals[r * Group + g] + m.bias[first + g] : totals[r * Group + g];
        if (m.relu && y < 0) y = 0;
        m.y[(row + r) * m.y_stride + first + g] = y;
      }
    }
  }
  LOCKSTEP_INLINE static T total(const V* parts) {
    T lanes[kLanes];
#pragma GCC unroll 4
    for (int p = 0; p < kLanes / kW; ++p) store_native(lanes + p * kW, parts[p]);
    for (int half = kLanes / 2; half > 0; half /= 2) {
      for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
    }
    return lanes[0];
  }
  // As total(), of kNative registers at once: lane l of the first one becomes the total of register l. A step adds the
  // halves of runs of 2 `Half` lanes; register i goes with i + Half.
  template <int Half>
  LOCKSTEP_INLINE static void fold(NativeF32* v) {
    constexpr std::make_integer_sequence<int, kNative> kLaneNumbers;
#pragma GCC unroll 8
    for (int i = 0; i < Half; ++i) {
      const NativeF32 a = v[i], b = v[i + Half];
      v[i] = exchanged<Half, false>(a, b, kLaneNumbers) + exchanged<Half, true>(a, b, kLaneNumbers);
    }
    if constexpr (Half > 1) fold<Half / 2>(v);
  }
};

}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL

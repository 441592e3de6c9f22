// Max pooling on blocks of 16 channels, for table.cpp.
#pragma once

#include "lockstep/kernels/vector/levels/lanes.h"

namespace lockstep::vector::LOCKSTEP_LEVEL {
namespace {

typedef std::uint8_t NativeU8 __attribute__((vector_size(kNative)));

// Where v is larger than the best so far, or a NaN, it takes its place. Positions below 256 are exact in f32, which
// makes them lanes like the values.
template <int N>
LOCKSTEP_INLINE void take_larger(Vector<N>& best, Vector<N>& at, Vector<N> v, float position) {
  if constexpr (N == kNative) {
    const auto larger = (v.value > best.value) | (v.value != v.value);
    best.value = larger ? v.value : best.value;
    at.value = larger ? NativeF32{} + position : at.value;
  } else {
    take_larger(best.low, at.low, v.low, position);
    take_larger(best.high, at.high, v.high, position);
  }
}

template <int N>
LOCKSTEP_INLINE void store_bytes(std::uint8_t* to, Vector<N> v) {
  if constexpr (N == kNative) {
    const NativeU8 bytes = __builtin_convertvector(__builtin_convertvector(v.value, NativeU32), NativeU8);
    __builtin_memcpy(to, &bytes, sizeof bytes);
  } else {
    store_bytes(to, v.low);
    store_bytes(to + N / 2, v.high);
  }
}

template <class T>
struct Pooling {
  using MaxRow = typename PoolTable<T>::MaxRow;

  static void max_row(const MaxRow& r) {
    for (std::int64_t o = 0; o < r.out_w; ++o) max_window(r, r.left + o * r.stride_w, o * kLanes);
  }

  LOCKSTEP_INLINE static void max_window(const MaxRow& r, std::int64_t left, std::int64_t to) {
    Lanes best = broadcast(-__builtin_inff()), at = broadcast(0);
    bool empty = true;
    for (std::int64_t i = 0; i < r.kernel_h; ++i) {
      const std::int64_t h = r.top + i * r.dilation_h;
      if (h < 0 || h >= r.in_h) continue;
      for (std::int64_t j = 0; j < r.kernel_w; ++j) {
        const std::int64_t w = left + j * r.dilation_w;
        if (w < 0 || w >= r.in_w) continue;
        const auto position = static_cast<float>(i * r.kernel_w + j);
        if (empty) at = broadcast(position);
        empty = false;
        take_larger(best, at, load(r.x + (h * r.in_w + w) * kLanes), position);
      }
    }
    store(r.y + to, best);
    store_bytes(r.position + to, at);
  }

  static constexpr PoolTable<T> table{max_row};
};

}  // namespace
}  // namespace lockstep::vector::LOCKSTEP_LEVEL

// Max pooling of a plane, for table.cpp: lanes are the channels of a block, or neighbouring windows of a plain row.
// Positions are counted in f32, which holds those of all windows that u8 can tell.
#pragma once

#include "lockstep/kernels/vector/levels/lanes.h"

namespace lockstep::vector::LOCKSTEP_LEVEL {
namespace {

constexpr float kLowest = -__builtin_inff();

// Of windows the maxima and where they are: of equal values the first, of values with a NaN the last NaN.
template <int N>
struct Maxima {
  Vector<N> value, at;

  LOCKSTEP_INLINE void take(Vector<N> v, float position) {
    at = each([=](NativeF32 a, NativeF32 b, NativeF32 p) { return ((a > b) | (a != a)) ? NativeF32{} + position : p; },
              v, value, at);
    value = each([](NativeF32 a, NativeF32 b) { return ((a > b) | (a != a)) ? a : b; }, v, value);
  }
};

// A block's lanes; half a register where registers are wider.
template <int Block>
struct BlockLanes {
  static constexpr int kWidth = Block < kNative ? kNative : Block;
  template <class T>
  LOCKSTEP_INLINE static Vector<kWidth> load(const T* p) {
    if constexpr (Block < kNative) {
      return LOCKSTEP_LEVEL::load(p, Block);
    } else {
      return LOCKSTEP_LEVEL::load<Block>(p);
    }
  }
  template <class T>
  LOCKSTEP_INLINE static void store(T* p, Vector<kWidth> v) {
    if constexpr (Block < kNative) {
      LOCKSTEP_LEVEL::store(p, v, Block);
    } else {
      LOCKSTEP_LEVEL::store(p, v);
    }
  }
};

// Of a window's taps along one dimension those inside the image.
struct Taps {
  std::int64_t begin, end;
};
LOCKSTEP_INLINE Taps taps_inside(std::int64_t start, std::int64_t in, std::int64_t kernel, std::int64_t dilation) {
  Taps taps{0, kernel};
  if (start < 0) taps.begin = (-start + dilation - 1) / dilation;
  if (start + (kernel - 1) * dilation >= in) taps.end = start < in ? (in - start + dilation - 1) / dilation : 0;
  return taps.begin < taps.end ? taps : Taps{0, 0};
}

// [0, even number of elements) as its elements 0, 2, 4 ...
template <int N>
LOCKSTEP_INLINE Vector<N> even(Vector<N> a, Vector<N> b) {
  if constexpr (N != kNative) {
    return {even(a.low, a.high), even(b.low, b.high)};
  } else if constexpr (N == 16) {
    return {__builtin_shufflevector(a.value, b.value, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)};
  } else if constexpr (N == 8) {
    return {__builtin_shufflevector(a.value, b.value, 0, 2, 4, 6, 8, 10, 12, 14)};
  } else {
    return {__builtin_shufflevector(a.value, b.value, 0, 2, 4, 6)};
  }
}

template <class T>
struct MaxPool {
  template <int Block>
  static void blocked(const MaxPoolShape& s, const T* x, T* y, std::uint8_t* index) {
    using L = BlockLanes<Block>;
    constexpr int kWidth = L::kWidth;
    float counted[kWidth] = {};
    for (std::int64_t l = 0; l < s.channels; ++l) counted[l] = 1;
    const Vector<kWidth> counts = load<kWidth>(counted);
    const auto keep = [=](Vector<kWidth> v) {
      return each([](NativeF32 c, NativeF32 u) { return c != 0 ? u : NativeF32{}; }, counts, v);
    };
    for (std::int64_t oh = 0; oh < s.out_h; ++oh) {
      const std::int64_t top = oh * s.stride_h - s.padding_h;
      const Taps rows = taps_inside(top, s.in_h, s.kernel_h, s.dilation_h);
      for (std::int64_t ow = 0; ow < s.out_w; ++ow, y += Block, index += Block) {
        const std::int64_t left = ow * s.stride_w - s.padding_w;
        const Taps cols = taps_inside(left, s.in_w, s.kernel_w, s.dilation_w);
        const bool empty = rows.begin == rows.end || cols.begin == cols.end;
        const float first = empty ? 0 : static_cast<float>(rows.begin * s.kernel_w + cols.begin);
        Maxima<kWidth> best{broadcast<kWidth>(kLowest), broadcast<kWidth>(first)};
        for (std::int64_t r = rows.begin; r < rows.end; ++r) {
          const T* from = x + ((top + r * s.dilation_h) * s.in_w + left) * Block;
          for (std::int64_t c = cols.begin; c < cols.end; ++c)
            best.take(L::load(from + c * s.dilation_w * Block), static_cast<float>(r * s.kernel_w + c));
        }
        L::store(y, keep(best.value));
        L::store(index, keep(best.at));
      }
    }
  }

  static void forward(const MaxPoolShape& s, const T* x, T* y, std::uint8_t* index) {
    if (s.block == 8) return blocked<8>(s, x, y, index);
    blocked<16>(s, x, y, index);
  }
  static constexpr MaxPoolTable<T> table{forward, nullptr};
};

}  // namespace
}  // namespace lockstep::vector::LOCKSTEP_LEVEL

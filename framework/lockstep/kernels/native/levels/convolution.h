// Sums of products of packed planes, for table.cpp.
#pragma once

#include "lockstep/kernels/native/levels/lanes.h"

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {

constexpr int kNatives = kLanes / kNative;  // registers of a vector of 16
#if defined(__AVX512F__)
constexpr int kTile = 2, kMostFilters = 8, kMostWeights = 4;  // of 32 registers
#else
constexpr int kTile = kNatives, kMostFilters = kRegisters * 3 / 4 / kTile, kMostWeights = 2;
#endif
constexpr int kMostColumns = 5;

// Calls f with n, 1 to Most, as a compile-time number.
template <int N>
struct Number {
  static constexpr int value = N;
};
template <int Most, class F>
LOCKSTEP_INLINE void with_number(std::int64_t n, F f) {
  if constexpr (Most == 1) {
    f(Number<1>{});
  } else if (n == Most) {
    f(Number<Most>{});
  } else {
    with_number<Most - 1>(n, f);
  }
}

// Calls body(first, number) for parts of n, as equal as can be and of at most Most. It divides by constants alone: some
// processors take as long for another division as for a small tile.
template <int Most, class Body>
LOCKSTEP_INLINE void in_blocks(std::int64_t n, Body body) {
  if (n <= 0) return;
  const std::int64_t blocks = (n + Most - 1) / Most;
  std::int64_t largest = blocks == 1 ? n : Most;
  while ((largest - 1) * blocks >= n) --largest;
  const std::int64_t larger = n - (largest - 1) * blocks;  // parts have the largest size, the rest one less
  std::int64_t begin = 0;
  for (std::int64_t b = 0; b < blocks; ++b) {
    const std::int64_t own = b < larger ? largest : largest - 1;
    with_number<Most>(own, [=](auto number) { body(begin, number); });
    begin += own;
  }
}

// The registers of a tile are those of a pair of vectors, or of one of them.
template <int Filters>
[[gnu::noinline]] void tile(const ConvolutionTable::Forward& c, std::int64_t filter, const ConvolutionPair& pair,
                            const std::int64_t* offsets, float* y) {
  const auto& s = c.planes;
  NativeF32 sums[Filters][kTile];
#pragma GCC unroll 8
  for (int f = 0; f < Filters; ++f) {
#pragma GCC unroll 4
    for (int t = 0; t < kTile; ++t) sums[f][t] = NativeF32{} + (c.bias ? c.bias[filter + f] : 0);
  }
  for (std::int64_t ch = 0; ch < s.channels; ++ch) {
    for (std::int64_t r = pair.row_begin; r < pair.row_end; ++r) {
      const float* x = c.x + ch * s.plane + r * s.stride;
      const float* w = c.w + (ch * s.kernel_h + r) * s.kernel_w * s.filters + filter;
      for (std::int64_t k = 0; k < s.kernel_w; ++k, w += s.filters) {
        NativeF32 v[kTile];
#pragma GCC unroll 4
        for (int t = 0; t < kTile; ++t) v[t] = load_native(x + offsets[t / kNatives] + t % kNatives * kNative + k);
#pragma GCC unroll 8
        for (int f = 0; f < Filters; ++f) {
          const NativeF32 weight = broadcast_native(w + f);
#pragma GCC unroll 4
          for (int t = 0; t < kTile; ++t) sums[f][t] = multiply_add(v[t], weight, sums[f][t]);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int f = 0; f < Filters; ++f) {
#pragma GCC unroll 4
    for (int t = 0; t < kTile; ++t) {
      const NativeF32 u = sums[f][t];
      store_native(y + f * c.count * 2 * kLanes + t * kNative, c.relu ? (u < 0 ? NativeF32{} : u) : u);
    }
  }
}

void convolution_forward(const ConvolutionTable::Forward& c) {
  in_blocks<kMostFilters>(c.planes.filters, [&c](std::int64_t filter, auto filters) {
    float* y = c.y + filter * c.count * 2 * kLanes;
    for (std::int64_t p = 0; p < c.count; ++p) {
      const std::int64_t offsets[2] = {c.pairs[p].first, c.pairs[p].second};
      for (int t = 0; t < 2 * kNatives; t += kTile, y += kTile * kNative)
        tile<filters.value>(c, filter, c.pairs[p], offsets + t / kNatives, y);
    }
  });
}

// Of `Filters` filters and `Columns` of the kernel's columns in one of its rows; one register's lanes of each vector,
// so that a lane's sum is the same at every level.
template <int Filters, int Columns>
[[gnu::noinline]] void weight_sums(const ConvolutionTable::Weights& c, const float* x, const float* dy, float* sums,
                                   std::int64_t filter_sums) {
  const std::int64_t filter_dy = c.count * kLanes;
  NativeF32 total[Filters][Columns];
#pragma GCC unroll 4
  for (int f = 0; f < Filters; ++f) {
#pragma GCC unroll 5
    for (int k = 0; k < Columns; ++k) total[f][k] = load_native(sums + f * filter_sums + k * kLanes);
  }
  for (std::int64_t sample = 0; sample < c.samples; ++sample, x += c.x_sample, dy += c.dy_sample) {
    const float* gradient = dy;
    for (std::int64_t v = 0; v < c.count; ++v, gradient += kLanes) {
      const float* from = x + c.offsets[v];
      NativeF32 d[Filters];
#pragma GCC unroll 4
      for (int f = 0; f < Filters; ++f) d[f] = load_native(gradient + f * filter_dy);
#pragma GCC unroll 5
      for (int k = 0; k < Columns; ++k) {
        NativeF32 u = load_native(from + k);
        keep_in_register(u);
#pragma GCC unroll 4
        for (int f = 0; f < Filters; ++f) total[f][k] = multiply_add(u, d[f], total[f][k]);
      }
    }
  }
#pragma GCC unroll 4
  for (int f = 0; f < Filters; ++f) {
#pragma GCC unroll 5
    for (int k = 0; k < Columns; ++k) store_native(sums + f * filter_sums + k * kLanes, total[f][k]);
  }
}

void convolution_weights(const ConvolutionTable::Weights& c) {
  const auto& s = c.planes;
  const std::int64_t filter_sums = s.channels * s.kernel_h * s.kernel_w * kLanes, filter_dy = c.count * kLanes;
  in_blocks<kMostWeights>(s.filters, [=, &c](std::int64_t filter, auto filters) {
    const float* dy = c.dy + filter * filter_dy;
    for (std::int64_t row = 0; row < s.channels * s.kernel_h; ++row) {
      const float* x = c.x + row / s.kernel_h * s.plane + row % s.kernel_h * s.stride;
      float* sums = c.sums + filter * filter_sums + row * s.kernel_w * kLanes;
      in_blocks<kMostColumns>(s.kernel_w, [=, &c](std::int64_t column, auto columns) {
        for (int at = 0; at < kLanes; at += kNative)
          weight_sums<filters.value, columns.value>(c, x + column + at, dy + at, sums + column * kLanes + at,
                                                    filter_sums);
      });
    }
  });
  for (std::int64_t f = 0; f < s.filters; ++f) {
    Lanes total = load(c.bias_sums + f * kLanes);
    for (std::int64_t sample = 0; sample < c.samples; ++sample) {
      const float* dy = c.dy + sample * c.dy_sample + f * filter_dy;
      for (std::int64_t i = 0; i < filter_dy; i += kLanes) total = total + load(dy + i);
    }
    store(c.bias_sums + f * kLanes, total);
  }
}

// Halves are added to halves, at every level.
LOCKSTEP_INLINE float total_of(Vector<kNative> lanes) {
  NativeF32 v = lanes.value;
#if defined(__AVX512F__)
  v += __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
  v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3);
#elif defined(__AVX2__)
  v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
#endif
  return (v[0] + v[2]) + (v[1] + v[3]);
}
template <int N>
LOCKSTEP_INLINE float total_of(Vector<N> v) {
  return total_of(v.low + v.high);
}

void convolution_fold(std::int64_t n, const float* sums, float* totals) {
  for (std::int64_t i = 0; i < n; ++i) totals[i] = total_of(load(sums + i * kLanes));
}

void convolution_copy(const ConvolutionTable::Rows& c) {
  const Lanes zero = broadcast(0);
  for (std::int64_t p = 0; p < c.planes; ++p) {
    for (std::int64_t r = 0; r < c.rows; ++r) {
      const float* from = c.from + p * c.from_plane + r * c.from_row;
      float* to = c.to + p * c.to_plane + r * c.to_row;
      for_positions(0, c.width, [=](auto position) { position.store(to, position.load(from)); });
      if (c.zeros) store(to + c.width, zero);
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL

// Products of any number of rows with a packed matrix, for attention and the vocabulary: tiles of rows and columns stay
// in registers while the sum runs. Lanes are columns, so the bits of a result depend neither on the level nor on how
// rows are divided.
#pragma once

#include "lockstep/kernels/native/levels/product.h"

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {

constexpr int kProductTile = 2;                            // registers of a tile along the columns
constexpr int kMostRows = kMostSums / (kProductTile + 1);  // of a tile: 16 of 32 registers, 8 of 16

template <bool Add, int Rows>
[[gnu::noinline]] void packed_tile(std::int64_t depth, const float* a, std::int64_t a_stride, const float* b, float* c,
                                   std::int64_t c_stride) {
  using V = NativeF32;
  V sums[Rows][kProductTile];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 2
    for (int t = 0; t < kProductTile; ++t) sums[r][t] = Add ? load_native(c + r * c_stride + t * kWidth<float>) : V{};
  }
  for (std::int64_t k = 0; k < depth; ++k, b += kPanel) {
    V column[kProductTile];
#pragma GCC unroll 2
    for (int t = 0; t < kProductTile; ++t) column[t] = load_native(b + t * kWidth<float>);
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
    for (int t = 0; t < kProductTile; ++t) store_native(c + r * c_stride + t * kWidth<float>, sums[r][t]);
  }
}

template <bool Add>
void packed_product(const ProductTable::Rows& p) {
  constexpr int kColumns = kProductTile * kWidth<float>;
  static_assert(kPanel % kColumns == 0);
  for (std::int64_t panel = 0; panel < p.panels; ++panel) {
    const float* b = p.b + panel * p.depth * kPanel;
    in_blocks<kMostRows>(p.rows, [&p, panel, b](std::int64_t row, auto rows) {
      float* c = p.c + row * p.c_stride + panel * kPanel;
      for (int at = 0; at < kPanel; at += kColumns)
        packed_tile<Add, rows.value>(p.depth, p.a + row * p.a_stride, p.a_stride, b + at, c + at, p.c_stride);
    });
  }
}

}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL

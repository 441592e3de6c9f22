// Products of whole matrices by blocks, for table.cpp: tiles of rows and of two registers of columns stay in registers
// while the sum runs. Lanes are columns, so the bits of a result depend neither on the level nor on the blocks.
#pragma once

#include "lockstep/kernels/native/levels/matrix_dots.h"

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {

constexpr int kMatrixTile = 2;                   // registers of a tile along the columns
constexpr int kMatrixRows = kRegisters / 2 - 2;  // of a tile: two sums a row, two registers of b and one of a

template <class T>
struct Matrix : private MatrixMemory<T> {
  using V = typename NativeOf<T>::Type;
  using Table = MatrixTable<T>;
  using Block = typename Table::Block;
  using Memory = MatrixMemory<T>;
  using Memory::copy_some;
  using Memory::transpose_exactly;
  static constexpr int kW = kWidth<T>, kColumns = kMatrixTile * kW;
  static constexpr std::int64_t kStride = Table::kStride, kPanel = Table::kPanel;
  static_assert(kPanel % kColumns == 0);

  // Where the sums of a tile begin, and what they become.
  struct Start {
    const T *row_bias, *column_bias;  // of the tile
    bool continues, relu;
  };

  // Rows of b, at `at`, are `stride` apart.
  struct Panel {
    const T* at;
    std::int64_t stride;
  };

  // While it runs, what the tile behind it reads of c is fetched.
  template <int Rows>
  [[gnu::noinline]] static void tile(std::int64_t depth, const T* a, const Panel& panel, T* c, std::int64_t c_stride,
                                     const Start& start) {
    V sums[Rows][kMatrixTile];
#pragma GCC unroll 14
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 2
      for (int t = 0; t < kMatrixTile; ++t) sums[r][t] = V{};
    }
    if (start.continues) {
#pragma GCC unroll 14
      for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 2
        for (int t = 0; t < kMatrixTile; ++t) sums[r][t] = load_native(c + r * c_stride + t * kW);
      }
    } else if (start.column_bias != nullptr) {
#pragma GCC unroll 14
      for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 2
        for (int t = 0; t < kMatrixTile; ++t) sums[r][t] = load_native(start.column_bias + t * kW);
      }
    } else if (start.row_bias != nullptr) {
#pragma GCC unroll 14
      for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 2
        for (int t = 0; t < kMatrixTile; ++t) sums[r][t] = broadcast_native(start.row_bias + r);
      }
    }
#pragma GCC unroll 14
    for (int r = 0; r < Rows; ++r) {
      __builtin_prefetch(c + r * c_stride + kColumns, 1);
      if constexpr (kColumns * sizeof(T) > 64) __builtin_prefetch(c + r * c_stride + kColumns + kW, 1);
    }
    const T* b = panel.at;
    const std::int64_t stride = panel.stride, ahead = stride == kPanel ? 8 * kPanel : 24 * stride;
    for (std::int64_t k = 0; k < depth; ++k, b += stride, ++a) {
      V column[kMatrixTile];
#pragma GCC unroll 2
      for (int t = 0; t < kMatrixTile; ++t) column[t] = load_native(b + t * kW);
      __builtin_prefetch(b + ahead);
      if constexpr (kColumns * sizeof(T) > 64) __builtin_prefetch(b + ahead + kW);
#pragma GCC unroll 14
      for (int r = 0; r < Rows; ++r) {
        V value = broadcast_native(a + r * kStride);
        keep_in_register(value);
#pragma GCC unroll 2
        for (int t = 0; t < kMatrixTile; ++t) sums[r][t] = multiply_add(value, column[t], sums[r][t]);
      }
    }
    if (start.relu) {
#pragma GCC unroll 14
      for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 2
        for (int t = 0; t < kMatrixTile; ++t) sums[r][t] = sums[r][t] < 0 ? V{} : sums[r][t];
      }
    }
#pragma GCC unroll 14
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 2
      for (int t = 0; t < kMatrixTile; ++t) store_native(c + r * c_stride + t * kW, sums[r][t]);
    }
  }

  // Fetches rows of an array into the second-level cache, line by line, in `calls` parts.
  struct Prefetch {
    static constexpr std::int64_t kLine = 64 / sizeof(T);
    Prefetch(const T* first, std::int64_t rows, std::int64_t columns, std::int64_t row_stride, std::int64_t calls)
        : row(first),
          stride(row_stride),
          lines((columns + kLine - 1) / kLine),
          left(rows * lines),
          share((left + calls - 1) / calls) {}
    void some() {
      for (std::int64_t i = 0; i < share && left > 0; ++i, --left) {
        __builtin_prefetch(row + line * kLine, 0, 2);
        if (++line == lines) line = 0, row += stride;
      }
    }
    const T* row;
    std::int64_t stride, lines, left, share, line = 0;
  };

  // A tile whose part of c is narrower than the tile, or transposed: it is worked out in memory of its own.
  template <int Rows>
  [[gnu::noinline]] static void tile_aside(const Block& m, const T* a, const Panel& b, T* c, std::int64_t columns,
                                           const Start& start) {
    alignas(64) T own[kMatrixRows * kColumns], bias[kColumns] = {};
    Start aside = start;
    if (start.continues) {
      if (m.transposed) {
        transpose_exactly({columns, Rows, c, m.c_stride, own, kColumns});
      } else {
        for (int r = 0; r < Rows; ++r) copy_some(c + r * m.c_stride, own + r * kColumns, columns);
      }
    } else if (start.column_bias != nullptr) {
      copy_some(start.column_bias, bias, columns);
      aside.column_bias = bias;
    }
    tile<Rows>(m.depth, a, b, own, kColumns, aside);
    if (m.transposed) {
      transpose_exactly({Rows, columns, own, kColumns, c, m.c_stride});
    } else {
      for (int r = 0; r < Rows; ++r) copy_some(own + r * kColumns, c + r * m.c_stride, columns);
    }
  }

  static void multiply(const Block& m) {
    static_assert(kMatrixRows <= Table::kTileRows);
    const std::int64_t tiles = ((m.rows + kMatrixRows - 1) / kMatrixRows) * ((m.columns + kColumns - 1) / kColumns);
    Prefetch ahead(m.ahead, m.ahead_rows, m.ahead_columns, m.ahead_stride, tiles);
    in_blocks<kMatrixRows>(m.rows, [&m, &ahead](std::int64_t row, auto rows) {
      const T* a = m.a + row * m.a_stride;
      Prefetch next(a + rows.value * m.a_stride, 0, 0, 0, 1);
      if (m.own != nullptr) {
        const std::int64_t behind = m.rows - row - rows.value;
        next = Prefetch(a + rows.value * m.a_stride, behind < kMatrixRows ? behind : kMatrixRows, m.depth, m.a_stride,
                        (m.columns + kColumns - 1) / kColumns);
        for (int r = 0; r < rows.value; ++r) copy_some(a + r * m.a_stride, m.own + r * kStride, m.depth);
        a = m.own;
      }
      for (std::int64_t column = 0; column < m.columns; column += kColumns) {
        const std::int64_t panel = column / kPanel;
        const bool is_last = m.last != nullptr && (panel + 1) * kPanel > m.columns;
        const Panel b{(is_last ? m.last : m.b + panel * m.b_panel) + column % kPanel, is_last ? kPanel : m.b_stride};
        const std::int64_t columns = m.columns - column < kColumns ? m.columns - column : kColumns;
        const Start start{m.row_bias != nullptr ? m.row_bias + row : nullptr,
                          m.column_bias != nullptr ? m.column_bias + column : nullptr, m.continues, m.relu};
        next.some();
        ahead.some();
        if (m.transposed) {
          tile_aside<rows.value>(m, a, b, m.c + column * m.c_stride + row, columns, start);
        } else if (columns < kColumns) {
          tile_aside<rows.value>(m, a, b, m.c + row * m.c_stride + column, columns, start);
        } else {
          tile<rows.value>(m.depth, a, b, m.c + row * m.c_stride + column, m.c_stride, start);
        }
      }
    });
  }

  static constexpr Table table{multiply, Memory::transpose, Memory::copy_panels, MatrixDots<T>::dots,
                               Memory::column_sums};
};

}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL

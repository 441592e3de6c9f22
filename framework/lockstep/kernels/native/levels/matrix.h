// Products of whole matrices by blocks, for table.cpp: tiles of rows and of two registers of columns stay in registers
// while the sum runs. Lanes are columns, so the bits of a result depend neither on the level nor on the blocks.
#pragma once

#include "lockstep/kernels/native/levels/attention_memory.h"
#include "lockstep/kernels/native/levels/product.h"

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {

constexpr int kMatrixTile = 2;  // registers of a tile along the columns
#if defined(__AVX512F__)
constexpr int kMatrixRows = 14;  // of a tile: 28 sums, two registers of b and one of a are 31 of 32
constexpr int kDotRows = 4;      // rows of a whose sums run side by side
#else
constexpr int kMatrixRows = 6;
constexpr int kDotRows = 1;
#endif
constexpr int kDotGroup = 4;  // rows of b whose sums run side by side

template <class T>
struct Matrix {
  using V = typename NativeOf<T>::Type;
  using Table = MatrixTable<T>;
  using Block = typename Table::Block;
  using Copy = typename Table::Copy;
  using Dots = typename Table::Dots;
  static constexpr int kW = kWidth<T>, kColumns = kMatrixTile * kW;
  static constexpr std::int64_t kStride = Table::kStride, kPanel = Table::kPanel;
  static_assert(kPanel % kColumns == 0);

  // Where the sums of a tile begin, and what they become.
  struct Start {
    const T *row_bias, *column_bias;  // of the tile
    bool continues, relu;
  };

  template <int Rows>
  [[gnu::noinline]] static void tile(std::int64_t depth, const T* a, const T* b, T* c, std::int64_t c_stride,
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
    for (int r = 0; r < Rows; ++r) __builtin_prefetch(c + r * c_stride, 1);
    for (std::int64_t k = 0; k < depth; ++k, b += kPanel, ++a) {
      V column[kMatrixTile];
#pragma GCC unroll 2
      for (int t = 0; t < kMatrixTile; ++t) column[t] = load_native(b + t * kW);
      __builtin_prefetch(b + kAhead * kPanel);
      if constexpr (kColumns * sizeof(T) > 64) __builtin_prefetch(b + kAhead * kPanel + kW);
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
  [[gnu::noinline]] static void tile_aside(const Block& m, const T* a, const T* b, T* c, std::int64_t columns,
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
        const T* b = m.b + column / kPanel * m.depth * kPanel + column % kPanel;
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

  static void transpose(const Copy& m) { transpose_as<false>(m); }

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

  static void dots(const Dots& m) {
    in_blocks<kDotRows>(m.rows, [&m](std::int64_t row, auto rows) {
      in_groups(m.count,
                [&m, row, rows](std::int64_t first, auto group) { dot_tile<rows.value, group.value>(m, row, first); });
    });
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

  static constexpr Table table{multiply, transpose, copy_panels, dots, column_sums};

 private:
  static constexpr std::int64_t kAhead = 8;  // rows of a panel between the products and the prefetch

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
  static void transpose_exactly(const Copy& m) { transpose_as<true>(m); }

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
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
      for (int g = 0; g < Group; ++g) {
        T lanes[kLanes];
#pragma GCC unroll 4
        for (int p = 0; p < kParts; ++p) store_native(lanes + p * kW, sums[r][g][p]);
        for (int half = kLanes / 2; half > 0; half /= 2) {
          for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
        }
        T y = m.bias != nullptr ? lanes[0] + m.bias[first + g] : lanes[0];
        if (m.relu && y < 0) y = 0;
        m.y[(row + r) * m.y_stride + first + g] = y;
      }
    }
  }
};

}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL

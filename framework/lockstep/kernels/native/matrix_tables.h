// The functions of one instruction set level for products of matrices, of tables.h: data only.
#pragma once

#include <cstdint>

namespace lockstep::kernels::native {

// Products of whole matrices by blocks, T float or double. Each element of c adds its products in the order of depth,
// by fused multiply-adds; a block that continues reads c back. So bits depend neither on the blocks nor on the level.
template <class T>
struct MatrixTable {
  static constexpr std::int64_t kPanel = 128 / sizeof(T);    // columns of b that lie side by side
  static constexpr std::int64_t kDepth = 1536 / sizeof(T);   // the most of a block
  static constexpr std::int64_t kStride = 1600 / sizeof(T);  // of the rows of a: an odd number of cache lines

  // c [rows][columns] = [relu](bias or c + a b). b is in panels of kPanel columns, `b_panel` elements apart; rows of a
  // panel are b_stride apart. Where `last` is not null it is the panel of the columns behind the last multiple of
  // kPanel, its rows kPanel apart. Every panel can be read in full. Rows of a are a_stride apart and copied to `own`,
  // kTileRows * kStride elements, before their products; `own` null: they are kStride apart, and are not copied.
  static constexpr std::int64_t kTileRows = 14;
  struct Block {
    std::int64_t rows, columns, depth;
    const T* a;
    std::int64_t a_stride;
    T* own;
    const T *b, *last;
    std::int64_t b_stride, b_panel;
    T* c;
    std::int64_t c_stride;
    bool transposed;                  // c lies as [columns][rows]
    bool continues;                   // sums begin with c; else with a bias, or 0
    const T *row_bias, *column_bias;  // null, or [rows] and [columns]; one of them at most
    bool relu;
    // Rows that the next block reads, `ahead_stride` elements apart: they are prefetched between products.
    const T* ahead;
    std::int64_t ahead_rows, ahead_columns, ahead_stride;
  };
  struct Copy {
    std::int64_t rows, columns;
    const T* from;
    std::int64_t from_stride;
    T* to;
    std::int64_t to_stride;
  };
  // y [rows][count] = [relu](a b^T + bias), a [rows][a_stride] and b [count][b_stride] as they lie.
  // Product i of a sum goes to partial sum i % 16, and these are added in pairs: 0 and 8, 1 and 9, ...; 0 and 4,
  // ...
  struct Dots {
    std::int64_t rows, count, depth;
    const T* a;
    std::int64_t a_stride;
    const T* b;
    std::int64_t b_stride;
    const T* bias;  // null, or [count]
    bool relu;
    T* y;
    std::int64_t y_stride;
  };
  void (*multiply)(const Block&);
  // to [columns][to_stride] = the transpose of `from`; where `rows` is no multiple of 16, rows of `to` get zeros up
  // to the next one.
  void (*transpose)(const Copy&);
  // to [panels of columns][rows][kPanel], zeros behind the last column; to_stride is not read.
  void (*copy_panels)(const Copy&);
  void (*dots)(const Dots&);
  // sums [columns] += the columns of `from`, in order of its rows; `to` is not read.
  void (*column_sums)(const Copy&, double* sums);
};

}  // namespace lockstep::kernels::native

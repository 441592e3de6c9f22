// The part of tables.h for products of bf16 numbers in pairs with sums in f32, by instructions that not every processor
// of a level has: native_kernels.h, pair_table(). Matrices are padded with zeros: their sides are multiples of kPanel.
// A matrix is stored by rows, or in panels of pairs [panels][depth / 2][kPanel][2], where the last index counts two
// elements that follow each other along the sum. In which order a product adds is the processor's affair, so bits in
// bf16 depend on its instructions.
#pragma once

#include <cstdint>

namespace lockstep::kernels::native {

using Bf16 = std::uint16_t;  // see tables.h

struct PairTable {
  // c [rows][panels * kPanel] = or += a [rows][depth] b, with a by rows and b in panels of pairs; strides in elements.
  struct Rows {
    std::int64_t rows, depth, panels;
    const Bf16* a;
    std::int64_t a_stride;
    const Bf16* b;
    float* c;
    std::int64_t c_stride;
  };
  void (*start)();  // a thread calls it before its products, and stop() after them
  void (*stop)();
  void (*add)(const Rows&);
  void (*set)(const Rows&);  // c = a b
};

// The functions around the products. T is float or Bf16.
struct PairMemoryTable {
  // to [padded_rows][to_stride] by rows = from [rows][columns], with zeros behind them; to_stride is a multiple of
  // kPanel.
  template <class T>
  struct Copy {
    std::int64_t rows, columns;
    const T* from;
    std::int64_t from_stride;
    std::int64_t padded_rows;
    Bf16* to;
    std::int64_t to_stride;
  };
  // All of [rows][columns], sides multiples of kPanel.
  struct Matrix {
    std::int64_t rows, columns;
    const Bf16* from;
    std::int64_t from_stride;
    Bf16* to;
    std::int64_t to_stride;
  };
  void (*copy_bf16)(const Copy<Bf16>&);
  void (*copy_f32)(const Copy<float>&);
  void (*transpose)(const Matrix&);  // to[c * to_stride + r] = from[r * from_stride + c]
  void (*lanes)(const Matrix&);      // panels of pairs of the transposed matrix: the sum runs along the columns
  void (*pairs)(const Matrix&);      // panels of pairs: the sum runs along the rows. Rows are `to_stride` of a panel
  // to[r * to_stride + c] = factor * from[r * from_stride + c].
  struct Out {
    std::int64_t rows, columns;
    const float* from;
    std::int64_t from_stride;
    float factor;
    Bf16* to;
    std::int64_t to_stride;
  };
  void (*store)(const Out&);
  // y[r] = sum over columns of a[r * stride + c] b[r * stride + c].
  void (*dots)(std::int64_t rows, std::int64_t columns, const Bf16* a, const Bf16* b, std::int64_t stride, float* y);
};

// Scores x [keys][kPanel] as AttentionTable has them; keys is a multiple of kPanel.
struct PairAttentionTable {
  // As AttentionTable::softmax of scale x, without a result in x.
  struct Softmax {
    std::int64_t keys;
    const float* x;
    float scale;                // above 0
    float *top, *sum, *factor;  // [kPanel]
    Bf16* p;                    // becomes exp(scale x - top), [keys / 2][kPanel][2]
  };
  // p = exp(scale x - log_sum), ds = p (dp - delta). A log_sum of -infinity counts as 0.
  struct Slopes {
    std::int64_t keys;
    const float *x, *dp;
    float scale;
    const float *log_sums, *delta;  // [kPanel]
    Bf16 *p_rows, *ds_rows;         // by rows, `stride` apart
    std::int64_t stride;
    Bf16* ds_pairs;  // [keys / 2][kPanel][2]
  };
  void (*softmax)(const Softmax&);
  void (*slopes)(const Slopes&);
  // x [rows][kPanel] in bf16: by rows, `stride` apart, and in pairs [rows / 2][kPanel][2]; either may be null.
  void (*pack)(std::int64_t rows, const float* x, Bf16* by_rows, std::int64_t stride, Bf16* pairs);
};

}  // namespace lockstep::kernels::native

#include "lockstep/kernels/native/matrix_product.h"

#include <algorithm>

#include "lockstep/core/parallel_for.h"
#include "lockstep/core/partition.h"
#include "lockstep/kernels/native/matrix_plan.h"

namespace lockstep::kernels::native {
namespace {

// Rows of c up to which sums run along the lanes: more of them where the depth pays for adding the partial sums.
constexpr std::int64_t kFewRows = 4, kFewRowsOfMuch = 16, kMuch = 256;

template <class T>
void pack_panels(const MatrixTable<T>& table, const Side& side, std::int64_t columns, std::int64_t depth, const T* from,
                 T* to) {
  constexpr std::int64_t kPanelWidth = MatrixTable<T>::kPanel;
  if (!side.along_depth) return table.copy_panels({depth, columns, from, side.stride, to, 0});
  for (std::int64_t c = 0; c < columns; c += kPanelWidth) {
    T* const panel = to + c * depth;
    const std::int64_t here = std::min(kPanelWidth, columns - c);
    if (rounded_up(here, kLanes) < kPanelWidth) std::fill_n(panel, depth * kPanelWidth, T(0));
    table.transpose({here, depth, from + c * side.stride, side.stride, panel, kPanelWidth});
  }
}

// The block of b after that of columns j and depth d, as it lies: rows p.b.stride apart.
template <class T>
struct Ahead {
  const T* from;
  std::int64_t rows = 0, columns = 0;
};
template <class T>
Ahead<T> next_block(const Plan& p, const Blocks<T>& blocks, std::int64_t j, std::int64_t d, const T* b) {
  if (++d == blocks.depth.count) d = 0, ++j;
  if (j == blocks.columns.count) return {b};
  const std::int64_t columns = blocks.columns.size(j), depth = blocks.depth.size(d);
  return {b + p.b.at(blocks.columns.begin(j), blocks.depth.begin(d)), p.b.along_depth ? columns : depth,
          p.b.along_depth ? depth : columns};
}

// The sums of the rows of a matrix that lies as [depth][rows], added while its blocks are in the cache.
template <class T>
class RowSums {
 public:
  // `sums` may be null; scratch: row_sums_scratch() elements.
  RowSums(T* sums, std::int64_t rows, std::int64_t depth, const MatrixTable<T>& table, T* scratch)
      : sums_(sums), depth_(depth), table_(table), wide_(reinterpret_cast<double*>(scratch)) {
    if (sums_ != nullptr) std::fill_n(wide_, rows, 0.0);
  }
  void add(const Side& side, std::int64_t row, std::int64_t rows, std::int64_t k, std::int64_t depth, const T* matrix) {
    if (sums_ == nullptr) return;
    table_.column_sums({depth, rows, matrix + side.at(row, k), side.stride, nullptr, 0}, wide_ + row);
    if (k + depth < depth_) return;
    std::transform(wide_ + row, wide_ + row + rows, sums_ + row, [](double v) { return static_cast<T>(v); });
  }

 private:
  T* sums_;
  std::int64_t depth_;
  const MatrixTable<T>& table_;
  double* wide_;
};
template <class T>
std::int64_t row_sums_scratch(std::int64_t rows) {
  return rounded_up(rows * static_cast<std::int64_t>(sizeof(double) / sizeof(T)), 2 * kLanes);
}

template <class T>
void multiply_blocks(const Plan& p, const MatrixArrays<T>& arrays, T* scratch, const MatrixTable<T>& table) {
  using Table = MatrixTable<T>;
  const Blocks<T> blocks(p);
  const T* const a = p.transposed ? arrays.b : arrays.a;
  const T* const b = p.transposed ? arrays.a : arrays.b;
  const T* const row_bias = p.transposed ? arrays.bias : arrays.row_bias;
  const T* const column_bias = p.transposed ? arrays.row_bias : arrays.bias;
  T *const a_block = scratch, *const b_block = scratch + blocks.a_elements();
  RowSums<T> sums(arrays.row_sums, p.transposed ? p.columns : p.rows, p.depth, table, b_block + blocks.b_elements());
  for (std::int64_t j = 0; j < blocks.columns.count; ++j) {
    const std::int64_t column = blocks.columns.begin(j), columns = blocks.columns.size(j);
    for (std::int64_t d = 0; d < blocks.depth.count; ++d) {
      const std::int64_t k = blocks.depth.begin(d), depth = blocks.depth.size(d);
      const bool direct = !p.b.along_depth && p.rows <= kDirectRows;
      const T* const b_from = b + p.b.at(column, k);
      const std::int64_t whole = direct ? columns / Table::kPanel * Table::kPanel : 0;
      if (columns > whole) pack_panels(table, p.b, columns - whole, depth, b_from + p.b.at(whole, 0), b_block);
      if (p.transposed) sums.add(p.b, column, columns, k, depth, b);
      const Ahead<T> ahead = next_block(p, blocks, j, d, b);
      for (std::int64_t i = 0; i < blocks.rows.count; ++i) {
        const std::int64_t row = blocks.rows.begin(i), rows = blocks.rows.size(i);
        const T* const from = a + p.a.at(row, k);
        if (!p.a.along_depth) table.transpose({depth, rows, from, p.a.stride, a_block, Table::kStride});
        if (!p.transposed && j == 0) sums.add(p.a, row, rows, k, depth, a);
        const Range part = part_of(ahead.rows, blocks.rows.count, i);
        table.multiply({.rows = rows,
                        .columns = columns,
                        .depth = depth,
                        .a = p.a.along_depth ? from : a_block,
                        .a_stride = p.a.along_depth ? p.a.stride : Table::kStride,
                        .own = p.a.along_depth ? a_block : nullptr,
                        .b = direct ? b_from : b_block,
                        .last = direct ? b_block : nullptr,
                        .b_stride = direct ? p.b.stride : Table::kPanel,
                        .b_panel = direct ? Table::kPanel : depth * Table::kPanel,
                        .c = arrays.c + (p.transposed ? column * p.c_stride + row : row * p.c_stride + column),
                        .c_stride = p.c_stride,
                        .transposed = p.transposed,
                        .continues = arrays.add || d > 0,
                        .row_bias = row_bias != nullptr ? row_bias + row : nullptr,
                        .column_bias = column_bias != nullptr ? column_bias + column : nullptr,
                        .relu = arrays.relu && d + 1 == blocks.depth.count,
                        .ahead = ahead.from + part.begin * p.b.stride,
                        .ahead_rows = part.size(),
                        .ahead_columns = ahead.columns,
                        .ahead_stride = p.b.stride});
      }
    }
  }
}

template <class T>
bool sums_along_lanes(const MatrixShape& s, const MatrixArrays<T>& arrays) {
  return s.rows <= (s.depth < kMuch ? kFewRows : kFewRowsOfMuch) && !s.transpose_a && s.transpose_b && !arrays.add &&
         arrays.row_bias == nullptr;
}

// A part of a product, of which `along_lanes` was decided by its whole shape.
template <class T>
void multiply_part(const MatrixShape& s, const MatrixArrays<T>& arrays, bool along_lanes, T* scratch,
                   const NativeKernels& kernels) {
  if (s.rows == 0 || s.columns == 0) return;
  const MatrixTable<T>& table = matrix_table<T>(kernels);
  if (!along_lanes) return multiply_blocks(best_plan<T>(s), arrays, scratch, table);
  table.dots({.rows = s.rows,
              .count = s.columns,
              .depth = s.depth,
              .a = arrays.a,
              .a_stride = s.a_stride,
              .b = arrays.b,
              .b_stride = s.b_stride,
              .bias = arrays.bias,
              .relu = arrays.relu,
              .y = arrays.c,
              .y_stride = s.c_stride});
}

}  // namespace

MatrixShape dense(std::int64_t rows, std::int64_t columns, std::int64_t depth, bool transpose_a, bool transpose_b) {
  return {.rows = rows,
          .columns = columns,
          .depth = depth,
          .transpose_a = transpose_a,
          .transpose_b = transpose_b,
          .a_stride = transpose_a ? rows : depth,
          .b_stride = transpose_b ? depth : columns,
          .c_stride = columns};
}

template <class T>
std::int64_t matrix_scratch(const MatrixShape& shape) {
  const Blocks<T> direct(plan_of(shape, false)), turned(plan_of(shape, true));
  return std::max(direct.a_elements() + direct.b_elements(), turned.a_elements() + turned.b_elements()) +
         row_sums_scratch<T>(shape.rows);
}

template <class T>
void multiply(const MatrixShape& s, const MatrixArrays<T>& arrays, T* scratch, const NativeKernels& kernels) {
  multiply_part(s, arrays, sums_along_lanes(s, arrays), scratch, kernels);
}

template <class T>
void multiply(const MatrixShape& s, const MatrixArrays<T>& arrays, std::int64_t workers, T* scratch,
              const NativeKernels& kernels) {
  // Parts along the columns, or along the rows where there are more of them.
  const std::int64_t unit = MatrixTable<T>::kPanel, each = matrix_scratch<T>(s);
  const bool by_columns = s.columns >= s.rows, along_lanes = sums_along_lanes(s, arrays);
  const std::int64_t units = (std::max(s.rows, s.columns) + unit - 1) / unit;
  const std::int64_t parts = std::max<std::int64_t>(1, std::min(workers, units));
  parallel_for(parts, s.rows * s.columns * s.depth / parts / 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin; part < end; ++part) {
      const auto range = part_of(units, parts, part);
      const std::int64_t first = range.begin * unit, last = std::min(range.end * unit, std::max(s.rows, s.columns));
      MatrixShape own = s;
      MatrixArrays<T> at = arrays;
      if (by_columns) {
        own.columns = last - first;
        at.b += s.transpose_b ? first * s.b_stride : first;
        at.c += first;
        if (part > 0) at.row_sums = nullptr;
        if (at.bias != nullptr) at.bias += first;
      } else {
        own.rows = last - first;
        at.a += s.transpose_a ? first : first * s.a_stride;
        at.c += first * s.c_stride;
        if (at.row_bias != nullptr) at.row_bias += first;
        if (at.row_sums != nullptr) at.row_sums += first;
      }
      multiply_part(own, at, along_lanes, scratch + part * each, kernels);
    }
  });
}

std::int64_t depth_parts(std::int64_t rows, std::int64_t columns, std::int64_t depth) {
  constexpr std::int64_t kLong = 4096, kSmall = 64 * 64, kMost = 16;
  return rows * columns > kSmall ? 1 : std::clamp<std::int64_t>(depth / kLong, 1, kMost);
}

template <class T>
void multiply_in_parts(const MatrixShape& s, const MatrixArrays<T>& arrays, std::int64_t workers, T* scratch, T* sums,
                       const NativeKernels& kernels) {
  const std::int64_t parts = depth_parts(s.rows, s.columns, s.depth), size = s.rows * s.columns;
  if (parts == 1) return multiply(s, arrays, workers, scratch, kernels);
  const std::int64_t each = matrix_scratch<T>(s), threads = std::min(workers, parts);
  if (arrays.row_sums != nullptr) {
    RowSums<T>(arrays.row_sums, s.rows, s.depth, matrix_table<T>(kernels), scratch)
        .add({false, s.a_stride}, 0, s.rows, 0, s.depth, arrays.a);
  }
  parallel_for(threads, size * s.depth / threads / 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t thread = begin; thread < end; ++thread) {
      const auto range = part_of(parts, threads, thread);
      for (std::int64_t part = range.begin; part < range.end; ++part) {
        const std::int64_t first = part * s.depth / parts, last = (part + 1) * s.depth / parts;
        MatrixShape own = s;
        own.depth = last - first;
        own.c_stride = s.columns;
        multiply<T>(own,
                    {.a = arrays.a + (s.transpose_a ? first * s.a_stride : first),
                     .b = arrays.b + (s.transpose_b ? first : first * s.b_stride),
                     .c = sums + part * size},
                    scratch + thread * each, kernels);
      }
    }
  });
  for (std::int64_t r = 0; r < s.rows; ++r) {
    for (std::int64_t c = 0; c < s.columns; ++c) {
      T total = sums[r * s.columns + c];
      for (std::int64_t part = 1; part < parts; ++part) total += sums[part * size + r * s.columns + c];
      arrays.c[r * s.c_stride + c] = total;
    }
  }
}

#define LOCKSTEP_INSTANTIATE(T)                                                                                  \
  template std::int64_t matrix_scratch<T>(const MatrixShape&);                                                   \
  template void multiply<T>(const MatrixShape&, const MatrixArrays<T>&, T*, const NativeKernels&);               \
  template void multiply<T>(const MatrixShape&, const MatrixArrays<T>&, std::int64_t, T*, const NativeKernels&); \
  template void multiply_in_parts<T>(const MatrixShape&, const MatrixArrays<T>&, std::int64_t, T*, T*,           \
                                     const NativeKernels&);
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(double)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::native

#include "lockstep/kernels/generic/matrix_product.h"

#include <algorithm>

#include "lockstep/core/parallel_for.h"
#include "lockstep/kernels/generic/gemm.h"
#include "lockstep/kernels/native/native_kernels.h"

namespace lockstep::kernels::generic {
namespace {

constexpr std::int64_t kRows = 64;                 // of a tile, whose sums lie on the stack
constexpr std::int64_t kColumns = native::kPanel;  // of a tile
constexpr std::int64_t kWorkOfElement = 8;         // multiply-adds that take as long as one element of parallel_for

std::int64_t parts_of(std::int64_t n, std::int64_t size) { return (n + size - 1) / size; }

// to [rows][kColumns] = a [rows][depth] b [depth][kColumns], each element in order of `depth`.
void tile(std::int64_t rows, std::int64_t depth, const float* a, std::int64_t stride, const float* b, float* to) {
  native_kernels().product_f32.set(
      {.rows = rows, .depth = depth, .panels = 1, .a = a, .a_stride = stride, .b = b, .c = to, .c_stride = kColumns});
}
void tile(std::int64_t rows, std::int64_t depth, const double* a, std::int64_t stride, const double* b, double* to) {
  for (std::int64_t r = 0; r < rows; ++r) {
    double sums[kColumns] = {};
    for (std::int64_t k = 0; k < depth; ++k) {
      const double value = a[r * stride + k];
      for (std::int64_t j = 0; j < kColumns; ++j) sums[j] += value * b[k * kColumns + j];
    }
    std::copy_n(sums, kColumns, to + r * kColumns);
  }
}

// to [rows][columns] = the transpose of from [columns][rows].
template <class T>
void transpose(std::int64_t rows, std::int64_t columns, Matrix<const T> from, T* to) {
  constexpr std::int64_t kSide = 16;
  parallel_for(parts_of(rows, kSide), columns * kSide, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = begin * kSide; first < std::min(rows, end * kSide); first += kSide) {
      for (std::int64_t c = 0; c < columns; ++c) {
        for (std::int64_t r = first; r < std::min(rows, first + kSide); ++r)
          to[r * columns + c] = from.data[c * from.stride + r];
      }
    }
  });
}

// The columns of op(b) as panels [panels][depth][kColumns], zeros behind the last.
template <class T>
void pack(bool transposed, std::int64_t depth, std::int64_t columns, Matrix<const T> b, T* to) {
  parallel_for(parts_of(columns, kColumns), depth * kColumns, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t panel = begin; panel < end; ++panel) {
      const std::int64_t first = panel * kColumns, count = std::min(kColumns, columns - first);
      T* row = to + first * depth;
      for (std::int64_t k = 0; k < depth; ++k, row += kColumns) {
        if (transposed) {
          for (std::int64_t j = 0; j < count; ++j) row[j] = b.data[(first + j) * b.stride + k];
        } else {
          std::copy_n(b.data + k * b.stride + first, count, row);
        }
        std::fill(row + count, row + kColumns, T(0));
      }
    }
  });
}

}  // namespace

std::int64_t MatrixProduct::scratch() const {
  if (way_ == Way::Blas) return 0;
  return (s_.transpose_a ? s_.m * s_.k : 0) + parts_of(s_.n, kColumns) * kColumns * s_.k;
}

template <class T>
void MatrixProduct::run_portable(Matrix<const T> a, Matrix<const T> b, bool adds, Matrix<T> c, T* scratch) const {
  const auto [transpose_a, transpose_b, m, n, depth] = s_;
  T* const packed = scratch;
  pack(transpose_b, depth, n, b, packed);
  if (transpose_a) {
    T* const rows = packed + parts_of(n, kColumns) * kColumns * depth;
    transpose(m, depth, a, rows);
    a = {rows, depth};
  }
  const std::int64_t row_blocks = parts_of(m, kRows), items = row_blocks * parts_of(n, kColumns);
  const std::int64_t work = std::min(m, kRows) * kColumns * std::max<std::int64_t>(depth, 1) / kWorkOfElement;
  parallel_for(items, work, [&, m = m, n = n, depth = depth](std::int64_t begin, std::int64_t end) {
    T sums[kRows * kColumns];
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t column = item / row_blocks * kColumns, row = item % row_blocks * kRows;
      const std::int64_t rows = std::min(kRows, m - row), columns = std::min(kColumns, n - column);
      T* const to = c.data + row * c.stride + column;
      for (std::int64_t k = 0; k == 0 || k < depth; k += kDepth) {
        tile(rows, std::min(kDepth, depth - k), a.data + row * a.stride + k, a.stride,
             packed + column * depth + k * kColumns, sums);
        for (std::int64_t r = 0; r < rows; ++r) {
          for (std::int64_t j = 0; j < columns; ++j) {
            T& element = to[r * c.stride + j];
            element = adds || k > 0 ? element + sums[r * kColumns + j] : sums[r * kColumns + j];
          }
        }
      }
    }
  });
}

template <class T>
void MatrixProduct::run(Matrix<const T> a, Matrix<const T> b, bool adds, Matrix<T> c, T* scratch) const {
  if (way_ == Way::Portable) return run_portable(a, b, adds, c, scratch);
  gemm(s_.transpose_a, s_.transpose_b, s_.m, s_.n, s_.k, T(1), a.data, a.stride, b.data, b.stride, T(adds ? 1 : 0),
       c.data, c.stride);
}

#define LOCKSTEP_INSTANTIATE(T) \
  template void MatrixProduct::run<T>(Matrix<const T>, Matrix<const T>, bool, Matrix<T>, T*) const;
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(double)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::generic

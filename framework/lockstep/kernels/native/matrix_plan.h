// How a product of matrices is cut into blocks, and which way round it is computed; bits depend on neither.
#pragma once

#include <algorithm>
#include <type_traits>

#include "lockstep/kernels/native/matrix_product.h"
#include "lockstep/kernels/native/rounding.h"

namespace lockstep::kernels::native {

// Blocks of a and b stay in a second-level cache of 1 MiB. They change no order of sums.
inline constexpr std::int64_t kRowBlock = 112, kColumnBlock = 512;
inline constexpr std::int64_t kDirectRows = 28;  // of c, up to which b is read as it lies

template <class T>
const MatrixTable<T>& matrix_table(const NativeKernels& kernels) {
  if constexpr (std::is_same_v<T, float>) {
    return kernels.matrix_f32;
  } else {
    return kernels.matrix_f64;
  }
}

// The part `index` of n in parts as equal as can be, each but the last a multiple of `unit`, which `most` is, too.
struct Parts {
  Parts(std::int64_t size, std::int64_t most, std::int64_t multiple)
      : n(size), count(std::max<std::int64_t>(1, (n + most - 1) / most)), unit(multiple) {}
  std::int64_t begin(std::int64_t index) const { return std::min(n, rounded_up(index * n / count, unit)); }
  std::int64_t size(std::int64_t index) const { return begin(index + 1) - begin(index); }
  std::int64_t n, count, unit;
};

// A product as the table takes it. Its a side is copied by rows, its b side by panels; c = a b is computed as the
// transpose of b^T a^T where that spares transpositions, or fills the panels better.
struct Side {
  bool along_depth;  // consecutive elements are those of a sum
  std::int64_t stride;
  // The offset of row (of a) or column (of b) `index`, at depth k.
  std::int64_t at(std::int64_t index, std::int64_t k) const {
    return along_depth ? index * stride + k : k * stride + index;
  }
};
struct Plan {
  std::int64_t rows, columns, depth, c_stride;
  Side a, b;
  bool transposed;  // c
};

inline Plan plan_of(const MatrixShape& s, bool transposed) {
  const Side a{!s.transpose_a, s.a_stride}, b{s.transpose_b, s.b_stride};
  if (transposed) return {s.columns, s.rows, s.depth, s.c_stride, b, a, true};
  return {s.rows, s.columns, s.depth, s.c_stride, a, b, false};
}

// About what the product takes, in cycles of a core with AVX-512: the bits are the same either way.
template <class T>
double cost(const Plan& p) {
  static constexpr double kTurned = 0.6, kCopied = 0.2, kTurnedSums = 1.5;
  constexpr std::int64_t kLeastRows = 4;  // of a tile: fewer wait for their sums
  using Table = MatrixTable<T>;
  const auto side = [](const Side& s, bool is_a) { return s.along_depth == is_a ? kCopied : kTurned; };
  const auto number = [](std::int64_t n) { return static_cast<double>(n); };
  const double panels = number(rounded_up(p.columns, Table::kPanel)) / number(Table::kPanel), depth = number(p.depth);
  const double chunks = number((p.columns + kColumnBlock - 1) / kColumnBlock);
  const double passes = number((p.depth + Table::kDepth - 1) / Table::kDepth);
  double cycles = number(std::max(p.rows, kLeastRows)) * panels * depth;
  cycles += side(p.a, true) * chunks * number(p.rows) * depth + side(p.b, false) * number(p.columns) * depth;
  if (p.transposed) cycles += kTurnedSums * passes * number(p.rows * p.columns);
  return cycles;
}

template <class T>
Plan best_plan(const MatrixShape& s) {
  const Plan direct = plan_of(s, false), turned = plan_of(s, true);
  return cost<T>(turned) < cost<T>(direct) ? turned : direct;
}

template <class T>
struct Blocks {
  using Table = MatrixTable<T>;
  explicit Blocks(const Plan& p)
      : rows(p.rows, kRowBlock, 1),
        columns(p.columns, kColumnBlock, Table::kPanel),
        depth(p.depth, Table::kDepth, kLanes) {}
  // Of the largest block; a product of a part of c needs no more.
  std::int64_t a_elements() const { return std::max(Table::kTileRows, std::min(rows.n, kRowBlock)) * Table::kStride; }
  std::int64_t b_elements() const {
    return std::min(rounded_up(columns.n, Table::kPanel), kColumnBlock) * std::min(depth.n, Table::kDepth);
  }
  Parts rows, columns, depth;
};

}  // namespace lockstep::kernels::native

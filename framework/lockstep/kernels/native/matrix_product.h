// Products of matrices of our own, f32 and f64: c = [relu](a b + bias), either operand transposed, rows strides apart.
// Each element adds its products in the order of depth, by fused multiply-adds, beginning with its bias (or with what c
// held), whatever the level, the number of threads and the blocks. Two exceptions, by shape alone: with few rows of c
// whose operands lie along the depth, a sum is made of 16 partial sums (MatrixTable::Dots); and depth_parts() cuts a
// very long depth into parts whose sums are added in order. Zero sizes are legal: without depth c is the bias, or 0.
// Nothing allocates or throws.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lockstep/kernels/native/native_kernels.h"

namespace lockstep::kernels::native {

struct MatrixShape {
  std::int64_t rows, columns, depth;          // of c, and of the sums
  bool transpose_a = false;                   // a lies as [depth][rows], else [rows][depth]
  bool transpose_b = false;                   // b lies as [columns][depth], else [depth][columns]
  std::int64_t a_stride, b_stride, c_stride;  // between rows as they lie
};
// Strides of matrices that lie dense.
MatrixShape dense(std::int64_t rows, std::int64_t columns, std::int64_t depth, bool transpose_a, bool transpose_b);

template <class T>
struct MatrixArrays {
  const T *a, *b;
  T* c;
  const T* bias = nullptr;      // null, or [columns]
  const T* row_bias = nullptr;  // null, or [rows]; not beside `bias`
  bool relu = false;
  bool add = false;       // to what c holds; then there is no bias
  T* row_sums = nullptr;  // null, or gets the sums of the rows of a [rows], in f64 and in order; a is transposed then
};

// Elements of scratch memory of one thread for products of this shape.
template <class T>
std::int64_t matrix_scratch(const MatrixShape& shape);

// On the calling thread.
template <class T>
void multiply(const MatrixShape& shape, const MatrixArrays<T>& arrays, T* scratch,
              const NativeKernels& kernels = native_kernels());

// On up to `workers` threads, each with matrix_scratch() elements. A part of c belongs to one thread.
template <class T>
void multiply(const MatrixShape& shape, const MatrixArrays<T>& arrays, std::int64_t workers, T* scratch,
              const NativeKernels& kernels = native_kernels());

// The parts into which the depth of a product is cut whose c is small and whose depth is great (gradients of weights by
// many rows): 1 for most. With more, `sums` of multiply_in_parts holds parts * rows * columns elements.
std::int64_t depth_parts(std::int64_t rows, std::int64_t columns, std::int64_t depth);
template <class T>
void multiply_in_parts(const MatrixShape& shape, const MatrixArrays<T>& arrays, std::int64_t workers, T* scratch,
                       T* sums, const NativeKernels& kernels = native_kernels());

}  // namespace lockstep::kernels::native

// Functions of n independent elements and of rows, f32 or bf16 (T is float or Bf16, arithmetic in f32), on OpenMP
// threads where that pays; results do not depend on their number. An output may be one of the inputs (not a shifted
// one). Nothing allocates or throws.
#pragma once

#include <cstdint>

#include "lockstep/kernels/vector/vector_kernels.h"

namespace lockstep::vector {

// To bf16 rounds to nearest even and keeps NaN; to float is exact.
void convert(std::int64_t n, const float* x, Bf16* y, const VectorKernels& kernels = vector_kernels());
void convert(std::int64_t n, const Bf16* x, float* y, const VectorKernels& kernels = vector_kernels());

// A NaN stays one.
template <class T>
void relu(std::int64_t n, const T* x, T* y, const VectorKernels& kernels = vector_kernels());
// dx = dy, but 0 where the output y is not positive.
template <class T>
void relu_backward(std::int64_t n, const T* y, const T* dy, T* dx, const VectorKernels& kernels = vector_kernels());
template <class T>
void add(std::int64_t n, const T* a, const T* b, T* y, const VectorKernels& kernels = vector_kernels());
template <class T>
void add_relu(std::int64_t n, const T* a, const T* b, T* y, const VectorKernels& kernels = vector_kernels());

// y = [relu](x + bias) for x, y [rows][columns] and bias [columns].
template <class T>
struct BiasForward {
  std::int64_t rows = 0, columns = 0;
  const T* x = nullptr;
  const float* bias = nullptr;
  bool relu = false;
  T* y = nullptr;
};
template <class T>
void bias_forward(const BiasForward<T>& options, const VectorKernels& kernels = vector_kernels());

// With y (ReLU's output) dx = dy where y is positive, else 0; without it dx = dy. dbias is dx summed over rows: f32
// over short runs, double beyond. Either output may be null.
template <class T>
struct BiasBackward {
  std::int64_t rows = 0, columns = 0;
  const T *dy = nullptr, *y = nullptr;
  T* dx = nullptr;
  float* dbias = nullptr;
};
template <class T>
void bias_backward(const BiasBackward<T>& options, const VectorKernels& kernels = vector_kernels());

}  // namespace lockstep::vector

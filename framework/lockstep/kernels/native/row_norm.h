// Layer norm and RMS norm of rows [rows, size] (ops/row_norm.h has the formulas), one pass over memory forward and one
// backward where a row fits into the caches. T is float or Bf16; statistics, weights and their gradients are float.
// Sums are taken in f32 over short runs and in double beyond, in an order that depends on rows and size alone: not on
// threads, nor on the level of instructions. Works on OpenMP threads where that pays; nothing allocates or throws.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lockstep/kernels/native/native_kernels.h"

namespace lockstep::kernels::native {

template <class T>
struct RowNormForward {
  std::int64_t rows = 0, size = 0;
  bool centred = true;
  double epsilon = 0;
  const T* x = nullptr;
  const float *weight = nullptr, *bias = nullptr;  // [size]; both may be null, or the bias
  T* y = nullptr;                                  // may be x
  float *inverse = nullptr, *mean = nullptr;       // [rows], outputs; mean only if centred
};
template <class T>
void row_norm_forward(const RowNormForward<T>& options, const NativeKernels& kernels = native_kernels());

template <class T>
struct RowNormBackward {
  std::int64_t rows = 0, size = 0;
  bool centred = true;
  const T *x = nullptr, *dy = nullptr;
  const float *inverse = nullptr, *mean = nullptr;
  const float* weight = nullptr;               // null: none, and no dweight
  T* dx = nullptr;                             // may be dy
  float *dweight = nullptr, *dbias = nullptr;  // [size]; dbias may be null
  std::byte* workspace = nullptr;              // aligned to 8; not needed without dweight
};
std::size_t row_norm_backward_workspace(std::int64_t rows, std::int64_t size);
template <class T>
void row_norm_backward(const RowNormBackward<T>& options, const NativeKernels& kernels = native_kernels());

}  // namespace lockstep::kernels::native

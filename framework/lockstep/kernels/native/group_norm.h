// Group norm with a weight per channel, over the rows of a view with groups (ops/row_norm.h); groups without weights
// are rows of row_norm.h. T is float or Bf16; statistics, weights and their gradients are float. The order of all sums
// follows from the view alone: not from threads, nor from the level of instructions. Works on OpenMP threads where that
// pays; nothing allocates or throws.
#pragma once

#include <cstddef>

#include "lockstep/kernels/native/native_kernels.h"
#include "lockstep/ops/row_norm.h"

namespace lockstep::kernels::native {

template <class T>
struct GroupNormForward {
  RowView view;
  double epsilon = 0;
  const T* x = nullptr;
  const float *weight = nullptr, *bias = nullptr;  // [channels]; bias may be null
  T* y = nullptr;                                  // may be x
  float *inverse = nullptr, *mean = nullptr;       // [rows], outputs
};
template <class T>
void group_norm_forward(const GroupNormForward<T>& options, const NativeKernels& kernels = native_kernels());

template <class T>
struct GroupNormBackward {
  RowView view;
  const T *x = nullptr, *dy = nullptr;
  const float *inverse = nullptr, *mean = nullptr, *weight = nullptr;
  T* dx = nullptr;                             // may be dy
  float *dweight = nullptr, *dbias = nullptr;  // [channels]; dbias may be null
  double* workspace = nullptr;
};
std::size_t group_norm_backward_workspace(const RowView& view);
template <class T>
void group_norm_backward(const GroupNormBackward<T>& options, const NativeKernels& kernels = native_kernels());

}  // namespace lockstep::kernels::native

// Layer, RMS and group norm of the rows of a view, T float or double (ops/row_norm.h has the formulas). Sums are taken
// in double in an order that depends on the view alone. Works on OpenMP threads where that pays; nothing allocates or
// throws.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lockstep/ops/row_norm.h"

namespace lockstep::kernels::generic {

template <class T>
struct RowNormForward {
  RowView view;
  bool centred = true;
  double epsilon = 0;
  const T* x = nullptr;
  const T *weight = nullptr, *bias = nullptr;  // [size], or [channels]; may be null
  T* y = nullptr;                              // may be x
  T *inverse = nullptr, *mean = nullptr;       // [rows], outputs; mean only if centred
};
template <class T>
void row_norm_forward(const RowNormForward<T>& options);

template <class T>
struct RowNormBackward {
  RowView view;
  bool centred = true;
  const T *x = nullptr, *dy = nullptr, *inverse = nullptr, *mean = nullptr;
  const T* weight = nullptr;               // null: none, and no dweight
  T* dx = nullptr;                         // may be dy
  T *dweight = nullptr, *dbias = nullptr;  // as weight; dbias may be null
};
// Of the columns' sums.
std::size_t row_norm_backward_workspace(const RowView& view);
template <class T>
void row_norm_backward(const RowNormBackward<T>& options, void* workspace);

}  // namespace lockstep::kernels::generic

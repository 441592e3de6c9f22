// Attention and its gradient in plain loops, for f32 and f64 (ops/attention.h): scores are computed in double, one
// query after the other, and nothing but the results is kept. Nothing allocates.
#pragma once

#include "lockstep/kernels/common/attention.h"

namespace lockstep::kernels::generic {

// Writes result (N, T, H, D) and the logarithms of the sums of exponentials (N, H, T).
template <class T>
void attention_forward(const AttentionGeometry& g, const AttentionRun& run, const AttentionProjections<const T>& x,
                       T* result, T* log_sums);

template <class T>
struct AttentionBackward {
  AttentionProjections<const T> x;
  const T *result, *log_sums, *dresult;
  AttentionProjections<T> dx;
};
template <class T>
void attention_backward(const AttentionGeometry& g, const AttentionRun& run, const AttentionBackward<T>& arrays);

}  // namespace lockstep::kernels::generic

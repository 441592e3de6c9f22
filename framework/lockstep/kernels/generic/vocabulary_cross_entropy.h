// The cross entropy of logits x W^T + b over a vocabulary and its gradient in plain loops, for f32 and f64. A logit is
// computed where it is needed, in double; none is kept. Nothing allocates. Throws SampleError for a wrong target.
#pragma once

#include "lockstep/kernels/common/vocabulary.h"

namespace lockstep::kernels::generic {

template <class T>
struct VocabularyOutputs {
  T *loss, *weight_sum, *log_sums, *losses;  // the last two: [positions]
  double* correct;
};
template <class T>
void vocabulary_forward(const VocabularyShape& s, const VocabularyInputs<T, T>& in, const VocabularyOutputs<T>& out);

template <class T>
struct VocabularyGradients {
  const T* log_sums;
  T weight_sum, dloss;
  T *dx, *dtable, *dbias;  // dbias may be null
};
template <class T>
void vocabulary_backward(const VocabularyShape& s, const VocabularyInputs<T, T>& in, const VocabularyGradients<T>& out);

}  // namespace lockstep::kernels::generic

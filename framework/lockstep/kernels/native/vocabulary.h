// The cross entropy of logits x W^T + b over a vocabulary and its gradient, for x in f32 and bf16
// (ops/vocabulary_cross_entropy.h). kPanel positions are the lanes; blocks of kWords words go through the product and
// the softmax while they lie in the first-level cache. Backward works through the vocabulary in chunks: a thread
// computes the slopes of all words of the chunk for its positions and adds to dx, then one thread per block of words
// sums over all positions for dtable. Sums follow words and positions, so that the bits depend on shapes alone. Where
// the processor multiplies pairs of bf16 numbers (native_kernels.h, pair_table()) and x is bf16, the table and the
// slopes are rounded to bf16 for the products, and bits depend on its instructions. Nothing allocates in a run. Throws
// SampleError for a wrong target.
#pragma once

#include "lockstep/kernels/common/vocabulary.h"
#include "lockstep/kernels/native/native_kernels.h"

namespace lockstep::kernels::native {

// T is float or Bf16.
struct VocabularyOutputs {
  float *loss, *weight_sum, *log_sums, *losses;  // the last two: [positions]
  double* correct;
};
template <class T>
struct VocabularyGradients {
  const float* log_sums;
  float weight_sum, dloss;
  T* dx;
  float *dtable, *dbias;  // dbias may be null
};

// Forward: `workers` threads have scratch memory of their own.
template <class T>
std::size_t vocabulary_forward_scratch(const VocabularyShape& s, std::int64_t workers,
                                       const NativeKernels& kernels = native_kernels());  // bytes
template <class T>
std::size_t vocabulary_backward_scratch(const VocabularyShape& s, std::int64_t workers,
                                        const NativeKernels& kernels = native_kernels());
template <class T>
void vocabulary_forward(const VocabularyShape& s, const VocabularyInputs<T, float>& in, const VocabularyOutputs& out,
                        std::int64_t workers, float* scratch, const NativeKernels& kernels = native_kernels());
template <class T>
void vocabulary_backward(const VocabularyShape& s, const VocabularyInputs<T, float>& in,
                         const VocabularyGradients<T>& out, std::int64_t workers, float* scratch,
                         const NativeKernels& kernels = native_kernels());

}  // namespace lockstep::kernels::native

// Attention and its gradient for f32 and bf16 (ops/attention.h; Dao et al., "FlashAttention", 2022). kPanel queries are
// the lanes; blocks of keys go through products with the queries, the softmax and products with the values while they
// lie in the first-level cache. Blocks begin at multiples of kKeyBlock from the first key that a panel of queries sees,
// and sums follow the keys, so that the bits depend on shapes and masks alone, not on threads or the level of
// instructions. Where the processor multiplies pairs of bf16 numbers (native_kernels.h, pair_table()), bf16 is computed
// so (paired_attention.h); elsewhere in f32. Nothing allocates in a run.
#pragma once

#include <atomic>

#include "lockstep/kernels/common/attention.h"
#include "lockstep/kernels/native/native_kernels.h"

namespace lockstep::kernels::native {

// T is float or Bf16.
template <class T>
struct AttentionForward {
  AttentionProjections<const T> x;
  T* result;
  float* log_sums;
};
template <class T>
struct AttentionBackward {
  AttentionProjections<const T> x;
  const T* result;
  const float* log_sums;
  const T* dresult;
  AttentionProjections<T> dx;
};

// `workers` threads have scratch memory of their own; each takes the next item until none is left. An item of forward
// is some panels of queries of one key head and sample, one of backward a whole key head of a sample.
template <class T>
std::size_t attention_forward_scratch(const AttentionGeometry& g, std::int64_t workers,
                                      const NativeKernels& kernels = native_kernels());  // bytes
template <class T>
std::size_t attention_backward_scratch(const AttentionGeometry& g, std::int64_t workers,
                                       const NativeKernels& kernels = native_kernels());
template <class T>
void attention_forward(const AttentionGeometry& g, const AttentionRun& run, const AttentionForward<T>& arrays,
                       std::int64_t workers, float* scratch, const NativeKernels& kernels = native_kernels());
template <class T>
void attention_backward(const AttentionGeometry& g, const AttentionRun& run, const AttentionBackward<T>& arrays,
                        std::int64_t workers, float* scratch, const NativeKernels& kernels = native_kernels());

}  // namespace lockstep::kernels::native

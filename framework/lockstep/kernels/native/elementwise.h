// Functions of n independent elements, f32 or bf16 (T is float or Bf16, arithmetic in f32), on OpenMP threads where
// that pays; results do not depend on their number. An output may be one of the inputs (not a shifted one). Nothing
// allocates or throws.
#pragma once

#include <cstdint>

#include "lockstep/kernels/native/native_kernels.h"

namespace lockstep::kernels::native {

// To bf16 rounds to nearest even and keeps NaN; to float is exact.
void convert(std::int64_t n, const float* x, Bf16* y, const NativeKernels& kernels = native_kernels());
void convert(std::int64_t n, const Bf16* x, float* y, const NativeKernels& kernels = native_kernels());

// A NaN stays one.
template <class T>
void relu(std::int64_t n, const T* x, T* y, const NativeKernels& kernels = native_kernels());
// dx = dy, but 0 where the output y is not positive.
template <class T>
void relu_backward(std::int64_t n, const T* y, const T* dy, T* dx, const NativeKernels& kernels = native_kernels());
template <class T>
void add(std::int64_t n, const T* a, const T* b, T* y, const NativeKernels& kernels = native_kernels());

}  // namespace lockstep::kernels::native

// Batch normalisation (Ioffe and Szegedy 2015) in one go with the residual and ReLU that follow it, over the view of
// common/geometry.h: [batch][channels / block][spatial][block], block 1, 8 or 16. T is float or Bf16; values
// per channel are float [channels]; gamma, beta, dgamma and dbeta may be null. Padding lanes of outputs are written 0
// (those of inputs must be finite). Sums are taken in f32 over short runs and in double beyond, in an order that
// depends on the view alone: not on threads, nor on the level of instructions. Works on OpenMP threads where that pays;
// nothing allocates or throws but Error for another block or a wrong set of arguments.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lockstep/kernels/common/geometry.h"
#include "lockstep/kernels/native/native_kernels.h"

namespace lockstep::kernels::native {

// Bytes of scratch space, aligned to 64, that batch_norm_forward and batch_norm_backward need.
std::int64_t batch_norm_workspace(const BatchNormView& view);

// A norm whose statistics are known; all are [channels], and there is none if `mean` is null.
struct GivenNorm {
  const float *gamma = nullptr, *beta = nullptr, *mean = nullptr, *inv_std = nullptr;
};

// y = [relu](gamma * (x - mean) * inv_std + beta [+ residual]) with inv_std = 1 / sqrt(biased variance + eps) of this
// batch. y may be x or residual.
template <class T>
struct BatchNormForward {
  BatchNormView view;
  const T* x = nullptr;
  const T* residual = nullptr;  // null: none
  GivenNorm of_residual = {};   // is applied to the residual
  const float *gamma = nullptr, *beta = nullptr;
  double eps = 0;
  bool relu = false;
  T* y = nullptr;
  float *mean = nullptr, *inv_std = nullptr;  // outputs
  double* sums = nullptr;                     // [2 channels]: of x, then of x^2
  std::byte* workspace = nullptr;
};
template <class T>
void batch_norm_forward(const BatchNormForward<T>& options, const NativeKernels& kernels = native_kernels());

// Its statistics without y: mean, inv_std and sums, with the same bits; of x, the view, eps and the workspace.
template <class T>
void batch_norm_forward_statistics(const BatchNormForward<T>& options, const NativeKernels& kernels = native_kernels());

// Its sums alone, of x and the view.
template <class T>
void batch_norm_moments(const BatchNormForward<T>& options, const NativeKernels& kernels = native_kernels());

// Computes y from given statistics: from mean and inv_std of forward, with the same bits, for recomputation in
// backward; or from a running mean and variance, for inference. y may be x or residual.
template <class T>
struct BatchNormApply {
  BatchNormView view;
  const T* x = nullptr;
  const T* residual = nullptr;
  GivenNorm of_residual = {};
  const float *gamma = nullptr, *beta = nullptr, *mean = nullptr;
  const float* inv_std = nullptr;   // either inv_std
  const float* variance = nullptr;  // or variance, with eps
  double eps = 0;
  bool relu = false;
  T* y = nullptr;
};
template <class T>
void batch_norm_apply(const BatchNormApply<T>& options, const NativeKernels& kernels = native_kernels());

// With relu, dy counts where the output is positive: read from y if it is given, else computed again from x, gamma and
// beta as forward did, which only holds without a residual. dresidual gets the masked dy; it needs relu (else it is dy)
// and y, and may be dy or addend, which is added to dy as a separate pass would. dx may be x, dy or y, but not
// dresidual.
template <class T>
struct BatchNormBackward {
  BatchNormView view;
  const T *x = nullptr, *dy = nullptr;
  const T* addend = nullptr;  // null: none; needs dresidual
  const T* y = nullptr;
  const float *gamma = nullptr, *beta = nullptr, *mean = nullptr, *inv_std = nullptr;
  bool relu = false;
  T *dx = nullptr, *dresidual = nullptr;
  float *dgamma = nullptr, *dbeta = nullptr;
  std::byte* workspace = nullptr;
};
template <class T>
void batch_norm_backward(const BatchNormBackward<T>& options, const NativeKernels& kernels = native_kernels());

// The two passes of backward alone. The first writes all outputs except dx, and the sums [2 channels] of the masked dy
// and of the masked dy times (x - mean). The second writes dx, by sums over `count` elements per channel, which may be
// more than the view has; it takes no dresidual: its dy is the masked one, without relu.
template <class T>
void batch_norm_gradient_sums(const BatchNormBackward<T>& options, double* sums,
                              const NativeKernels& kernels = native_kernels());
template <class T>
void batch_norm_gradient_apply(const BatchNormBackward<T>& options, const double* sums, double count,
                               const NativeKernels& kernels = native_kernels());

}  // namespace lockstep::kernels::native

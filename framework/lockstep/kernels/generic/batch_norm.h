// Batch normalisation (Ioffe and Szegedy 2015), and per-channel sums and biases, over a channel-blocked view
// [batch][channels / block][spatial][block]: block 1 is plain NCHW, 8 and 16 are blocked layouts with padded channels.
// Per-channel arrays have the logical channels, gamma, beta, dgamma and dbeta may be null. Padding lanes of outputs are
// written 0 (those of inputs must be finite). Sums are taken in double in an order that depends on the view alone;
// channel blocks are shared out to threads. y may be x, dx may be dy or x. Nothing allocates; another block throws
// Error.
#pragma once

#include <cstdint>

#include "lockstep/kernels/common/geometry.h"

namespace lockstep::kernels::generic {

// y = gamma * (x - mean) * inv_std + beta with inv_std = 1 / sqrt(biased variance + eps) of this batch. sums [2
// channels] gets the sum of x, then the sum of x^2 (n mean, M2 + n mean^2). An empty batch has mean and variance 0.
template <class T>
void batch_norm_forward(const BatchNormView& view, const T* x, const T* gamma, const T* beta, double eps, T* y, T* mean,
                        T* inv_std, double* sums);
template <class T>
void batch_norm_backward(const BatchNormView& view, const T* x, const T* dy, const T* gamma, const T* mean,
                         const T* inv_std, T* dx, T* dgamma, T* dbeta);

// y = gamma * (x - mean) * inv_std + beta, with the same bits as forward.
template <class T>
void batch_norm_normalise(const BatchNormView& view, const T* x, const T* gamma, const T* beta, const T* mean,
                          const T* inv_std, T* y);
// g = dy where that y is positive, else 0. g may be dy.
template <class T>
void batch_norm_mask(const BatchNormView& view, const T* x, const T* dy, const T* gamma, const T* beta, const T* mean,
                     const T* inv_std, T* g);

// The parts of forward and backward for statistics over more than this view. moments [2 channels + 1] get the sum of x,
// then of x^2, then the number of elements per channel; common/batch_norm_statistics.h computes statistics from them.
// Gradient sums [2 channels + 1] are the sums of dy, then of dy (x - mean), then the number; apply needs the sums over
// all views.
template <class T>
void batch_norm_moments(const BatchNormView& view, const T* x, double* moments);
template <class T>
void batch_norm_gradient_sums(const BatchNormView& view, const T* x, const T* dy, const T* mean, double* sums);
template <class T>
void batch_norm_gradient_apply(const BatchNormView& view, const T* x, const T* dy, const T* gamma, const T* mean,
                               const T* inv_std, const double* sums, T* dx);
// dgamma and dbeta from the gradient sums of a view.
template <class T>
void batch_norm_parameter_gradients(std::int64_t channels, const double* sums, const T* inv_std, T* dgamma, T* dbeta);

// The same with given statistics, which are constants for the gradient.
template <class T>
void batch_norm_inference(const BatchNormView& view, const T* x, const T* gamma, const T* beta, const T* running_mean,
                          const T* running_var, double eps, T* y);
template <class T>
void batch_norm_inference_backward(const BatchNormView& view, const T* x, const T* dy, const T* gamma,
                                   const T* running_mean, const T* running_var, double eps, T* dx, T* dgamma, T* dbeta);

// out[c] = sum of dy over batch and spatial: the gradient of a convolution's bias.
template <class T>
void channel_sum(const BatchNormView& view, const T* dy, T* out);
// y += bias[c] in place.
template <class T>
void add_channel_bias(const BatchNormView& view, T* y, const T* bias);

}  // namespace lockstep::kernels::generic

// One level's functions; compiled once per level with LOCKSTEP_LEVEL as the name of its namespace.
#include "lockstep/kernels/native/levels/attention.h"
#include "lockstep/kernels/native/levels/attention_memory.h"
#include "lockstep/kernels/native/levels/batch_norm.h"
#include "lockstep/kernels/native/levels/blocked_product.h"
#include "lockstep/kernels/native/levels/convolution.h"
#include "lockstep/kernels/native/levels/depthwise.h"
#include "lockstep/kernels/native/levels/elementwise.h"
#include "lockstep/kernels/native/levels/fourier.h"
#include "lockstep/kernels/native/levels/matrix.h"
#include "lockstep/kernels/native/levels/packed_product.h"
#include "lockstep/kernels/native/levels/pairs.h"
#include "lockstep/kernels/native/levels/peak.h"
#include "lockstep/kernels/native/levels/pointwise.h"
#include "lockstep/kernels/native/levels/pool.h"
#include "lockstep/kernels/native/levels/recurrent.h"
#include "lockstep/kernels/native/levels/row_norm.h"
#include "lockstep/kernels/native/levels/spectral.h"
#include "lockstep/kernels/native/levels/vocabulary.h"
#include "lockstep/kernels/native/levels/winograd.h"

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {

extern const NativeKernels kernels;
const NativeKernels kernels{
    .convert = {.to_bf16 = convert<float, Bf16>, .to_f32 = convert<Bf16, float>},
    .pointwise_f32 = Pointwise<float>::table,
    .pointwise_f64 = Pointwise<double>::table,
    .elementwise_f32 = Elementwise<float>::table,
    .elementwise_bf16 = Elementwise<Bf16>::table,
    .batch_norm_f32 = BatchNorm<float>::table,
    .batch_norm_bf16 = BatchNorm<Bf16>::table,
    .row_norm_f32 = RowNorm<float>::table,
    .row_norm_bf16 = RowNorm<Bf16>::table,
    .convolution = {.forward = convolution_forward,
                    .weights = convolution_weights,
                    .fold = convolution_fold,
                    .copy = convolution_copy},
    .blocked = {.product = blocked_product,
                .outer = blocked_outer,
                .depthwise_product = depthwise_product,
                .depthwise_outer = depthwise_outer,
                .sum = blocked_sum},
    .winograd2 = Winograd<WinogradF2>::table,
    .winograd4 = Winograd<WinogradF4>::table,
    .max_pool_f32 = MaxPool<float>::table,
    .max_pool_bf16 = MaxPool<Bf16>::table,
    .peak = {.f32 = peak_f32, .bf16 = peak_bf16},
    .recurrent_f32 = Recurrent<float>::table,
    .recurrent_f64 = Recurrent<double>::table,
    .product_f32 = {.add = packed_product<true>, .set = packed_product<false>},
    .matrix_f32 = Matrix<float>::table,
    .matrix_f64 = Matrix<double>::table,
    .attention = kAttentionTable,
    .attention_f32 = AttentionCopies<float>::table,
    .attention_bf16 = AttentionCopies<Bf16>::table,
    .vocabulary = {.scan = vocabulary_scan, .slopes = vocabulary_slopes, .copy = vocabulary_copy},
    .pair_tiles = kPairTiles,
    .pair_dots = kPairDots,
    .pair_memory = kPairMemory,
    .pair_attention = kPairAttention,
    .fourier_f32 = {.run = Fourier<float>::run, .sum = spectral_sum<float>},
    .fourier_f64 = {.run = Fourier<double>::run, .sum = spectral_sum<double>},
};

}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL

#include "lockstep/ops/derivatives.h"

namespace lockstep {
namespace {

using enum Derivatives;

constexpr OpDerivatives kTable[] = {
    {"all_reduce_sum", Any},
    {"average_pool2d", Any},
    {"average_pool2d_gradient", Any},
    {"batch_norm2d", First},
    {"batch_norm2d_gradient", None},
    {"batch_norm2d_gradient_apply", None},
    {"batch_norm2d_gradient_sums", None},
    {"batch_norm2d_inference", First},
    {"batch_norm2d_inference_gradient", None},
    {"batch_norm2d_moments", None},
    {"batch_norm2d_normalise", None},
    {"batch_norm2d_sync", First},
    {"cast", Any},
    {"channel_sum", Any},
    {"conv2d", Any},
    {"conv2d_backward_data", Any},
    {"conv2d_backward_weights", Any},
    {"count_correct", None},
    {"cross_entropy", First},
    {"cross_entropy_gradient", None},
    {"dropout", Any},
    {"expand", Any},
    {"fill", None},
    {"fold_batch_norm", None},
    {"linear", Any},
    {"linear_backward_data", Any},
    {"linear_backward_weights", Any},
    {"matmul", Any},
    {"max_pool2d", First},
    {"max_pool2d_gradient", None},
    {"pointwise", Any},
    {"reorder", None},
    {"reshape", Any},
    {"softmax", Any},
    {"softmax_gradient", Any},
    {"sum", Any},
    {"sum_to", Any},
};

}  // namespace

std::span<const OpDerivatives> op_derivatives() { return kTable; }

}  // namespace lockstep

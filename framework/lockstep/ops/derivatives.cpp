#include "lockstep/ops/derivatives.h"

namespace lockstep {
namespace {

using enum Derivatives;

constexpr std::string_view kBatchNorm =
    "batch norm can be differentiated once; do without it between the two Values of a gradient()";

constexpr OpDerivatives kTable[] = {
    {"all_reduce_sum", Any},
    {"average_pool2d", Any},
    {"average_pool2d_gradient", Any},
    {"batch_norm2d", First},
    {"batch_norm2d_gradient", None, kBatchNorm},
    {"batch_norm2d_gradient_apply", None, kBatchNorm},
    {"batch_norm2d_gradient_sums", None, kBatchNorm},
    {"batch_norm2d_inference", First},
    {"batch_norm2d_inference_gradient", None, kBatchNorm},
    {"batch_norm2d_moments", None},
    {"batch_norm2d_normalise", None},
    {"batch_norm2d_sync", First},
    {"cast", Any},
    {"channel_sum", Any},
    {"conv2d", Any},
    {"conv2d_backward_data", Any},
    {"conv2d_backward_weights", Any},
    {"count_correct", None, "it has no slope; return it among the counts of the model, not in the loss"},
    {"cross_entropy", First},
    {"cross_entropy_gradient", None,
     "cross_entropy can be differentiated once; the log of a softmax any number of times"},
    {"dropout", Any},
    {"expand", Any},
    {"fill", None},
    {"fold_batch_norm", None},
    {"linear", Any},
    {"linear_backward_data", Any},
    {"linear_backward_weights", Any},
    {"matmul", Any},
    {"max_pool2d", First},
    {"max_pool2d_gradient", None, "max_pool2d can be differentiated once; average_pool2d any number of times"},
    {"one_hot", None, "class indices have no slope"},
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

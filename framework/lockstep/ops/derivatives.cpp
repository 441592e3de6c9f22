#include "lockstep/ops/derivatives.h"

namespace lockstep {
namespace {

using enum Derivatives;

constexpr std::string_view kBatchNorm =
    "batch norm can be differentiated once, layer_norm and group_norm any number of times";

constexpr std::string_view kRecurrent =
    "a recurrent layer can be differentiated once; do without it between the two Values of a gradient()";

constexpr std::string_view kAttention =
    "attention can be differentiated once; softmax and matmul compose the same any number of times";

constexpr std::string_view kSparse =
    "a sparse table can be differentiated once; an Embedding with .sparse = false any number of times";

constexpr OpDerivatives kTable[] = {
    {"all_reduce_sum", Any},
    {"amax", Any},
    {"amin", Any},
    {"attention", First},
    {"attention_gradient", None, kAttention},
    {"average_pool1d", Any},
    {"average_pool1d_gradient", Any},
    {"average_pool2d", Any},
    {"average_pool2d_gradient", Any},
    {"average_pool3d", Any},
    {"average_pool3d_gradient", Any},
    {"bag", Any},
    {"bag_gradient", Any},
    {"bag_max", First},
    {"bag_max_gradient", None, "the largest elements of a bag can be differentiated once; its sum any number of times"},
    {"batch_norm2d", First},
    {"batch_norm2d_gradient", None, kBatchNorm},
    {"batch_norm2d_gradient_apply", None, kBatchNorm},
    {"batch_norm2d_gradient_sums", None, kBatchNorm},
    {"batch_norm2d_inference", First},
    {"batch_norm2d_inference_gradient", None, kBatchNorm},
    {"batch_norm2d_moments", None},
    {"batch_norm2d_normalise", None},
    {"batch_norm2d_statistics", None},
    {"batch_norm2d_sum", None},
    {"batch_norm2d_sum_normalise", None},
    {"batch_norm2d_sync", First},
    {"cast", Any},
    {"channel_sum", Any},
    {"class_counts", None, "it has no slope; return it in a metric of the model, not in the loss"},
    {"concat", Any},
    {"conv1d", Any},
    {"conv1d_backward_data", Any},
    {"conv1d_backward_weights", Any},
    {"conv2d", Any},
    {"conv2d_backward_data", Any},
    {"conv2d_backward_weights", Any},
    {"conv2d_of_norm", None},
    {"conv2d_of_norm_backward_weights", None},
    {"conv3d", Any},
    {"conv3d_backward_data", Any},
    {"conv3d_backward_weights", Any},
    {"count_correct", None, "it has no slope; return it in a metric of the model, not in the loss"},
    {"cross_entropy", First},
    {"cross_entropy_gradient", None,
     "cross_entropy can be differentiated once; the log of a softmax any number of times"},
    {"dropout", Any},
    {"embedding", Any},
    {"embedding_gradient", Any},
    {"expand", Any},
    {"fill", None},
    {"fold_batch_norm", None},
    {"fourier", Any},
    {"gather", Any},
    {"group_norm", Any},
    {"group_norm_gradient", Any},
    {"gru", First},
    {"gru_gradient", None, kRecurrent},
    {"index_add", Any},
    {"index_select", Any},
    {"layer_norm", Any},
    {"layer_norm_gradient", Any},
    {"linear", Any},
    {"linear_backward_data", Any},
    {"linear_backward_weights", Any},
    {"logsumexp", Any},
    {"lstm", First},
    {"lstm_gradient", None, kRecurrent},
    {"matmul", Any},
    {"max_pool1d", First},
    {"max_pool1d_gradient", None, "max_pool1d can be differentiated once; average_pool1d any number of times"},
    {"max_pool2d", First},
    {"max_pool2d_gradient", None, "max_pool2d can be differentiated once; average_pool2d any number of times"},
    {"max_pool3d", First},
    {"max_pool3d_gradient", None, "max_pool3d can be differentiated once; average_pool3d any number of times"},
    {"normal_noise", None, "random numbers have no slope"},
    {"one_hot", None, "class indices have no slope"},
    {"pad", Any},
    {"pad_gradient", Any},
    {"pair_products", Any},
    {"pair_products_gradient", Any},
    {"permute", Any},
    {"place", Any},
    {"pointwise", Any},
    {"reorder", None},
    {"resample", Any},
    {"reshape", Any},
    {"rms_norm", Any},
    {"rms_norm_gradient", Any},
    {"roll", Any},
    {"rotary", Any},
    {"scatter_add", Any},
    {"slice", Any},
    {"softmax", Any},
    {"softmax_gradient", Any},
    {"spectral_product", Any},
    {"split", Any},
    {"sum", Any},
    {"table", None},
    {"table_gradient", None, kSparse},
    {"table_lookup", First},
    {"to_floating", None, "integers have no slope; differentiate by a floating value"},
    {"vocabulary_cross_entropy", First},
    {"vocabulary_cross_entropy_gradient", None,
     "vocabulary_cross_entropy can be differentiated once; the log of a softmax any number of times"},
    {"write_rows", None, "rows are written to caches, in generation; concat has a gradient"},
};

}  // namespace

std::span<const OpDerivatives> op_derivatives() { return kTable; }

}  // namespace lockstep

// The table of the kernels on oneDNN; other sets run what oneDNN does not support.
#include <dnnl.hpp>

#include <fmt/format.h>

#include "lockstep/core/error.h"
#include "lockstep/kernels/onednn/batch_norm.h"
#include "lockstep/kernels/onednn/convolution.h"
#include "lockstep/kernels/onednn/inner_product.h"
#include "lockstep/kernels/onednn/pooling.h"
#include "lockstep/kernels/onednn/reorder.h"
#include "lockstep/kernels/onednn/small_work.h"
#include "lockstep/kernels/registry.h"
#include "lockstep/ops/batch_norm2d.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/convolution.h"
#include "lockstep/ops/linear.h"
#include "lockstep/ops/pool.h"
#include "lockstep/ops/reorder.h"

namespace lockstep::kernels {
namespace {

// A request that oneDNN does not support gets no offer; any other failure is an Error that names op and shape.
KernelFactory guarded(KernelFactory factory) {
  return [factory = std::move(factory)](const KernelRequest& request,
                                        std::span<const Layout> offered) -> std::vector<KernelOffer> {
    const onednn::SerialScope scope(onednn::is_small_work(request));
    try {
      return factory(request, offered);
    } catch (const dnnl::error& e) {
      if (e.status == dnnl_unimplemented) return {};
      fail(request.op->name(), "oneDNN refuses {} {}: {}", request.outputs[0].str(), request.op->attributes(),
           e.what());
    }
  };
}

}  // namespace

void register_onednn_kernels(KernelRegistry& registry) {
  using namespace onednn;
  registry.add("onednn",
               {
                   kernel_row<ConvolutionOp>("conv1d", convolution_forward),
                   kernel_row<ConvolutionBackwardDataOp>("conv1d_backward_data", convolution_backward_data),
                   kernel_row<ConvolutionBackwardWeightsOp>("conv1d_backward_weights", convolution_backward_weights),
                   kernel_row<ConvolutionOp>("conv2d", convolution_forward),
                   kernel_row<ConvolutionBackwardDataOp>("conv2d_backward_data", convolution_backward_data),
                   kernel_row<ConvolutionBackwardWeightsOp>("conv2d_backward_weights", convolution_backward_weights),
                   kernel_row<ConvolutionOp>("conv3d", convolution_forward),
                   kernel_row<ConvolutionBackwardDataOp>("conv3d_backward_data", convolution_backward_data),
                   kernel_row<ConvolutionBackwardWeightsOp>("conv3d_backward_weights", convolution_backward_weights),
                   kernel_row<LinearOp>("linear", linear_forward),
                   kernel_row<LinearBackwardDataOp>("linear_backward_data", linear_backward_data),
                   kernel_row<LinearBackwardWeightsOp>("linear_backward_weights", linear_backward_weights),
                   kernel_row<MatmulOp>("matmul", onednn::matmul),
                   kernel_row<PoolOp>("average_pool1d", average_pool),
                   kernel_row<PoolGradientOp>("average_pool1d_gradient", average_pool_gradient),
                   kernel_row<PoolGradientOp>("max_pool1d_gradient", max_pool_gradient),
                   kernel_row<PoolOp>("average_pool2d", average_pool),
                   kernel_row<PoolGradientOp>("average_pool2d_gradient", average_pool_gradient),
                   kernel_row<PoolGradientOp>("max_pool2d_gradient", max_pool_gradient),
                   kernel_row<PoolOp>("average_pool3d", average_pool),
                   kernel_row<PoolGradientOp>("average_pool3d_gradient", average_pool_gradient),
                   kernel_row<PoolGradientOp>("max_pool3d_gradient", max_pool_gradient),
                   kernel_row<BatchNorm2dOp>("batch_norm2d", batch_norm),
                   kernel_row<BatchNorm2dGradientOp>("batch_norm2d_gradient", batch_norm_gradient),
                   kernel_row<ReorderOp>("reorder", reorder_values),
                   kernel_row<CastOp>("cast", cast_values),
               },
               guarded);
}

bool has_onednn() { return true; }

std::string onednn_version() {
  const dnnl_version_t* v = dnnl_version();
  return fmt::format("oneDNN {}.{}.{} isa {:#x}", v->major, v->minor, v->patch,
                     static_cast<unsigned>(dnnl_get_effective_cpu_isa()));
}

}  // namespace lockstep::kernels

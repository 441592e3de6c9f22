// The table of what runs on oneDNN; what it does not support stays with the other sets.
#include <dnnl.hpp>

#include <fmt/format.h>

#include "lockstep/core/error.h"
#include "lockstep/kernels/onednn/batch_norm.h"
#include "lockstep/kernels/onednn/convolution.h"
#include "lockstep/kernels/onednn/elementwise.h"
#include "lockstep/kernels/onednn/inner_product.h"
#include "lockstep/kernels/onednn/pooling.h"
#include "lockstep/kernels/onednn/reorder.h"
#include "lockstep/kernels/onednn/small_work.h"
#include "lockstep/kernels/onednn/softmax.h"
#include "lockstep/kernels/registry.h"

namespace lockstep {
namespace {

// What oneDNN does not know is somebody else's; any other failure is an error naming op and shape.
template <class Factory>
auto guarded(Factory factory) {
  return
      [factory](const KernelRequest& request, std::span<const Layout> offered) -> decltype(factory(request, offered)) {
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
  registry.add("onednn", "conv2d", guarded(onednn::conv2d_forward));
  registry.add("onednn", "conv2d_backward_data", guarded(onednn::conv2d_backward_data));
  registry.add("onednn", "conv2d_backward_weights", guarded(onednn::conv2d_backward_weights));
  registry.add("onednn", "linear", guarded(onednn::linear_forward));
  registry.add("onednn", "linear_backward_data", guarded(onednn::linear_backward_data));
  registry.add("onednn", "linear_backward_weights", guarded(onednn::linear_backward_weights));
  registry.add("onednn", "matmul", guarded(onednn::matmul));
  registry.add("onednn", "average_pool2d", guarded(onednn::average_pool));
  registry.add("onednn", "average_pool2d_gradient", guarded(onednn::average_pool_gradient));
  registry.add("onednn", "max_pool2d_gradient", guarded(onednn::max_pool_gradient));
  registry.add("onednn", "batch_norm2d", guarded(onednn::batch_norm));
  registry.add("onednn", "batch_norm2d_gradient", guarded(onednn::batch_norm_gradient));
  registry.add("onednn", "unary", guarded(onednn::unary));
  registry.add("onednn", "unary_gradient", guarded(onednn::unary_gradient));
  registry.add("onednn", "binary", guarded(onednn::binary));
  registry.add("onednn", "softmax", guarded(onednn::softmax));
  registry.add("onednn", "softmax_gradient", guarded(onednn::softmax_gradient));
  registry.add("onednn", "reorder", guarded(onednn::reorder_values));
  registry.add("onednn", "cast", guarded(onednn::cast_values));
}

bool has_onednn() { return true; }

std::string onednn_version() {
  const dnnl_version_t* v = dnnl_version();
  return fmt::format("oneDNN {}.{}.{} isa {:#x}", v->major, v->minor, v->patch,
                     static_cast<unsigned>(dnnl_get_effective_cpu_isa()));
}

}  // namespace lockstep

#include "lockstep/kernels/onednn/softmax.h"

#include "lockstep/kernels/onednn/memory_layout.h"
#include "lockstep/kernels/onednn/primitive_kernel.h"

namespace lockstep::onednn {
namespace {

bool supported(const Type& t) { return t.dtype == DType::F32 && t.shape.elements() > 0; }

dnnl::softmax_forward::primitive_desc forward_primitive(const dnnl::memory::desc& x) {
  return {dnnl::softmax_forward::desc(dnnl::prop_kind::forward_training, x, 1), attributes(), engine(), true};
}

}  // namespace

std::optional<KernelOffer> softmax(const KernelRequest& r, std::span<const Layout>) {
  if (!supported(r.inputs[0])) return std::nullopt;
  const auto x = descriptor(r.inputs[0]);
  const auto primitive = forward_primitive(x);
  if (!primitive) return std::nullopt;
  auto offer = primitive_offer(r, primitive, {{DNNL_ARG_SRC, 0, false, x}, {DNNL_ARG_DST, 0, true, x}});
  if (offer) offer->in_place_input = 0;
  return offer;
}

std::optional<KernelOffer> softmax_gradient(const KernelRequest& r, std::span<const Layout>) {
  if (!supported(r.inputs[0])) return std::nullopt;
  const auto x = descriptor(r.inputs[0]);
  const auto hint = forward_primitive(x);
  if (!hint) return std::nullopt;
  const dnnl::softmax_backward::primitive_desc primitive(dnnl::softmax_backward::desc(x, x, 1), attributes(), engine(),
                                                         hint, true);
  if (!primitive) return std::nullopt;
  auto offer = primitive_offer(
      r, primitive, {{DNNL_ARG_DST, 0, false, x}, {DNNL_ARG_DIFF_DST, 1, false, x}, {DNNL_ARG_DIFF_SRC, 0, true, x}});
  if (offer) offer->in_place_input = 1;
  return offer;
}

}  // namespace lockstep::onednn

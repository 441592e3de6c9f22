#include "lockstep/kernels/onednn/reorder.h"

#include "lockstep/kernels/onednn/memory_layout.h"
#include "lockstep/kernels/onednn/primitive_kernel.h"
#include "lockstep/ops/reorder.h"

namespace lockstep::onednn {

std::optional<KernelOffer> reorder_values(const KernelRequest& r, std::span<const Layout> offered) {
  const Shape& shape = r.inputs[0].shape;
  if (r.dtype() != DType::F32 || r.inputs[0].dtype != DType::F32 || shape.rank() == 0 || shape.rank() > 6 ||
      shape.elements() == 0)
    return std::nullopt;
  const Layout& target = r.as<ReorderOp>().target();
  const auto from = descriptor(shape, offered[0]), to = descriptor(shape, target);
  const dnnl::reorder::primitive_desc primitive(engine(), from, engine(), to, attributes(), true);
  if (!primitive) return std::nullopt;
  auto offer = primitive_offer(r, primitive, {{DNNL_ARG_FROM, 0, false, from}, {DNNL_ARG_TO, 0, true, to}});
  if (offer) {  // as asked for, where several Layouts are the same memory
    offer->inputs[0] = offered[0];
    offer->outputs[0] = target;
  }
  return offer;
}

}  // namespace lockstep::onednn

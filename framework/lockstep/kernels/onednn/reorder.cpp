#include "lockstep/kernels/onednn/reorder.h"

#include "lockstep/kernels/onednn/memory_layout.h"
#include "lockstep/kernels/onednn/primitive_kernel.h"
#include "lockstep/ops/reorder.h"

namespace lockstep::kernels::onednn {

namespace {

std::optional<KernelOffer> offer_from_to(const KernelRequest& r, const Layout& source, const Layout& target) {
  const auto moves = [](const Type& t) { return t.dtype == DType::F32 || t.dtype == DType::BF16; };
  const Shape& shape = r.inputs[0].shape;
  if (!moves(r.inputs[0]) || !moves(r.outputs[0]) || shape.rank() == 0 || shape.rank() > 6 || shape.elements() == 0)
    return std::nullopt;
  const auto from = find_descriptor(r.inputs[0], source), to = find_descriptor(r.outputs[0], target);
  if (!from || !to) return std::nullopt;
  const dnnl::reorder::primitive_desc primitive(engine(), *from, engine(), *to, attributes(), true);
  if (!primitive) return std::nullopt;
  auto offer = primitive_offer(r, primitive, {{DNNL_ARG_FROM, 0, false, *from}, {DNNL_ARG_TO, 0, true, *to}});
  if (offer) {  // the requested one, as several Layouts may describe the same memory
    offer->inputs[0] = source;
    offer->outputs[0] = target;
  }
  return offer;
}

}  // namespace

std::optional<KernelOffer> reorder_values(const KernelRequest& r, std::span<const Layout> offered) {
  return offer_from_to(r, offered[0], r.as<ReorderOp>().target());
}

std::optional<KernelOffer> cast_values(const KernelRequest& r, std::span<const Layout> offered) {
  if (r.inputs[0].dtype == DType::F64 || r.outputs[0].dtype == DType::F64) return std::nullopt;
  return offer_from_to(r, offered[0], offered[0]);
}

}  // namespace lockstep::kernels::onednn

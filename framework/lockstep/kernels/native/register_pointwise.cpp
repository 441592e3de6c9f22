// The pointwise algebra.
#include "lockstep/kernels/native/pointwise.h"
#include "lockstep/kernels/native/rows.h"
#include "lockstep/ops/pointwise/pointwise_op.h"

namespace lockstep::kernels::native {
namespace {

// Takes the first offered layout that is not plain, if every input has the shape of the output or is a single element,
// and if the padding stays zero.
KernelOffer pointwise_offer(const KernelRequest& r, std::span<const Layout> offered) {
  KernelOffer offer = plain_offer(r);
  const Type& y = r.outputs[0];
  std::vector<bool> whole;
  const Layout* layout = nullptr;
  for (std::size_t k = 0; k < r.inputs.size(); ++k) {
    whole.push_back(r.inputs[k].shape == y.shape);
    if (!whole[k] && r.inputs[k].shape.elements() != 1) return offer;
    if (whole[k] && layout == nullptr && !offered[k].plain()) layout = &offered[k];
  }
  if (layout == nullptr) return offer;
  if (layout->has_padding(y.shape) && !r.as<PointwiseOp>().expression().keeps_zero(whole)) return offer;
  for (std::size_t k = 0; k < whole.size(); ++k) {
    if (whole[k]) offer.inputs[k] = *layout;
  }
  offer.outputs[0] = *layout;
  return offer;
}

std::optional<KernelOffer> pointwise_kernel(const KernelRequest& r, std::span<const Layout> offered) {
  const Type& y = r.outputs[0];
  const auto fits = [&](const Type& t) { return t.dtype == y.dtype; };
  if (!std::ranges::all_of(r.inputs, fits)) return std::nullopt;
  KernelOffer offer = pointwise_offer(r, offered);
  const auto same = std::ranges::find(r.inputs, y);
  if (same != r.inputs.end()) offer.in_place_input = static_cast<int>(same - r.inputs.begin());
  std::vector<Shape> shapes;
  for (const Type& t : r.inputs) shapes.push_back(t.shape);
  offer.build = [expression = r.as<PointwiseOp>().expression(), shapes, shape = y.shape, dtype = y.dtype,
                 n = offer.outputs[0].storage_elements(y.shape)] {
    return std::make_unique<PointwiseKernel>(expression, shapes, shape, n, dtype);
  };
  return offer;
}

}  // namespace

std::vector<KernelRow> pointwise_rows() { return {kernel_row<PointwiseOp>("pointwise", pointwise_kernel)}; }

}  // namespace lockstep::kernels::native

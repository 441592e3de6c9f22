// Sums, means, extremes and logsumexp over axes.
#include "lockstep/kernels/generic/reduce_axes.h"
#include "lockstep/kernels/generic/rows.h"

namespace lockstep::kernels::generic {
namespace {

std::optional<KernelOffer> reduction(const KernelRequest& r, std::span<const Layout>) {
  const auto& op = r.as<ReduceOp>();
  KernelOffer offer = plain_offer(r);
  offer.build = [kind = op.kind(), geometry = ReduceGeometry(r.inputs[0].shape, op.axes()), dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel(
          [kind, geometry](const Arguments& a) { reduce_axes(kind, geometry, a.in<T>(0), a.out<T>(0), a.workspace); },
          reduce_axes_workspace(geometry));
    });
  };
  return offer;
}

}  // namespace

std::vector<KernelRow> reduction_rows() {
  return {
      kernel_row<ReduceOp>("sum", reduction),
      kernel_row<ReduceOp>("amax", reduction),
      kernel_row<ReduceOp>("amin", reduction),
      kernel_row<ReduceOp>("logsumexp", reduction),
  };
}

}  // namespace lockstep::kernels::generic

// Layer, RMS and group norm.
#include "lockstep/kernels/generic/row_norm.h"
#include "lockstep/kernels/generic/rows.h"
#include "lockstep/ops/row_norm.h"

namespace lockstep::kernels::generic {
namespace {

std::optional<KernelOffer> row_norm(const KernelRequest& r, std::span<const Layout>) {
  const auto& op = r.as<RowNormOp>();
  KernelOffer offer = plain_offer(r);
  offer.in_place_input = 0;
  offer.build = [view = RowView(r.inputs[0].shape, op.options()), options = op.options(),
                 parameters = r.inputs.size() - 1, dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel([=](const Arguments& a) {
        row_norm_forward<T>({.view = view,
                             .centred = options.centred,
                             .epsilon = options.epsilon,
                             .x = a.in<T>(0),
                             .weight = parameters > 0 ? a.in<T>(1) : nullptr,
                             .bias = parameters > 1 ? a.in<T>(2) : nullptr,
                             .y = a.out<T>(0),
                             .inverse = a.out<T>(1),
                             .mean = options.centred ? a.out<T>(2) : nullptr});
      });
    });
  };
  return offer;
}

std::optional<KernelOffer> row_norm_gradient(const KernelRequest& r, std::span<const Layout>) {
  const auto& op = r.as<RowNormGradientOp>();
  KernelOffer offer = plain_offer(r);
  offer.in_place_input = 1;
  offer.build = [view = RowView(r.inputs[0].shape, op.options()), centred = op.options().centred,
                 weight = op.weight_input(), outputs = r.outputs.size(), dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel(
          [=](const Arguments& a) {
            row_norm_backward<T>({.view = view,
                                  .centred = centred,
                                  .x = a.in<T>(0),
                                  .dy = a.in<T>(1),
                                  .inverse = a.in<T>(2),
                                  .mean = centred ? a.in<T>(3) : nullptr,
                                  .weight = outputs > 1 ? a.in<T>(weight) : nullptr,
                                  .dx = a.out<T>(0),
                                  .dweight = outputs > 1 ? a.out<T>(1) : nullptr,
                                  .dbias = outputs > 2 ? a.out<T>(2) : nullptr},
                                 a.workspace);
          },
          outputs > 1 ? row_norm_backward_workspace(view) : 0);
    });
  };
  return offer;
}

}  // namespace

std::vector<KernelRow> row_norm_rows() {
  return {
      kernel_row<RowNormOp>("layer_norm", row_norm),
      kernel_row<RowNormOp>("rms_norm", row_norm),
      kernel_row<RowNormOp>("group_norm", row_norm),
      kernel_row<RowNormGradientOp>("layer_norm_gradient", row_norm_gradient),
      kernel_row<RowNormGradientOp>("rms_norm_gradient", row_norm_gradient),
      kernel_row<RowNormGradientOp>("group_norm_gradient", row_norm_gradient),
  };
}

}  // namespace lockstep::kernels::generic

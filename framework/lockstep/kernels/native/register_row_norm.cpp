// Layer, RMS and group norm.
#include "lockstep/kernels/native/group_norm.h"
#include "lockstep/kernels/native/row_norm.h"
#include "lockstep/kernels/native/rows.h"
#include "lockstep/ops/row_norm.h"

namespace lockstep::kernels::native {
namespace {

std::optional<KernelOffer> row_norm(const KernelRequest& r, std::span<const Layout>) {
  if (!supported(r)) return std::nullopt;
  const auto& op = r.as<RowNormOp>();
  KernelOffer offer = plain_offer(r);
  offer.in_place_input = 0;
  offer.build = build_for(r.dtype(), [view = RowView(r.inputs[0].shape, op.options()), options = op.options(),
                                      parameters = r.inputs.size() - 1]<class T>(T) {
    return make_kernel([=](const Arguments& a) {
      row_norm_forward<T>({.rows = view.rows,
                           .size = view.size,
                           .centred = options.centred,
                           .epsilon = options.epsilon,
                           .x = a.in<T>(0),
                           .weight = input_if<float>(parameters > 0, a, 1),
                           .bias = input_if<float>(parameters > 1, a, 2),
                           .y = a.out<T>(0),
                           .inverse = a.out<float>(1),
                           .mean = options.centred ? a.out<float>(2) : nullptr});
    });
  });
  return offer;
}

std::optional<KernelOffer> row_norm_gradient(const KernelRequest& r, std::span<const Layout>) {
  if (!supported(r)) return std::nullopt;
  const auto& op = r.as<RowNormGradientOp>();
  KernelOffer offer = plain_offer(r);
  offer.in_place_input = 1;
  offer.build = build_for(r.dtype(), [view = RowView(r.inputs[0].shape, op.options()), centred = op.options().centred,
                                      weight = op.weight_input(), outputs = r.outputs.size()]<class T>(T) {
    const auto run = [=](const Arguments& a) {
      row_norm_backward<T>({.rows = view.rows,
                            .size = view.size,
                            .centred = centred,
                            .x = a.in<T>(0),
                            .dy = a.in<T>(1),
                            .inverse = a.in<float>(2),
                            .mean = input_if<float>(centred, a, 3),
                            .weight = input_if<float>(outputs > 1, a, weight),
                            .dx = a.out<T>(0),
                            .dweight = outputs > 1 ? a.out<float>(1) : nullptr,
                            .dbias = outputs > 2 ? a.out<float>(2) : nullptr,
                            .workspace = a.scratch<std::byte>()});
    };
    return make_kernel(run, outputs > 1 ? row_norm_backward_workspace(view.rows, view.size) : 0);
  });
  return offer;
}

// Without parameters a group is a row like another.
std::optional<KernelOffer> group_norm(const KernelRequest& r, std::span<const Layout> offered) {
  if (r.inputs.size() == 1) return row_norm(r, offered);
  if (!supported(r)) return std::nullopt;
  const auto& op = r.as<RowNormOp>();
  KernelOffer offer = plain_offer(r);
  offer.in_place_input = 0;
  offer.build = build_for(r.dtype(), [view = RowView(r.inputs[0].shape, op.options()), epsilon = op.options().epsilon,
                                      bias = r.inputs.size() > 2]<class T>(T) {
    return make_kernel([=](const Arguments& a) {
      group_norm_forward<T>({.view = view,
                             .epsilon = epsilon,
                             .x = a.in<T>(0),
                             .weight = a.in<float>(1),
                             .bias = input_if<float>(bias, a, 2),
                             .y = a.out<T>(0),
                             .inverse = a.out<float>(1),
                             .mean = a.out<float>(2)});
    });
  });
  return offer;
}

std::optional<KernelOffer> group_norm_gradient(const KernelRequest& r, std::span<const Layout> offered) {
  if (r.outputs.size() == 1) return row_norm_gradient(r, offered);
  if (!supported(r)) return std::nullopt;
  KernelOffer offer = plain_offer(r);
  offer.in_place_input = 1;
  const RowView view(r.inputs[0].shape, r.as<RowNormGradientOp>().options());
  offer.build = build_for(r.dtype(), [view, bias = r.outputs.size() > 2]<class T>(T) {
    const auto run = [=](const Arguments& a) {
      group_norm_backward<T>({.view = view,
                              .x = a.in<T>(0),
                              .dy = a.in<T>(1),
                              .inverse = a.in<float>(2),
                              .mean = a.in<float>(3),
                              .weight = a.in<float>(4),
                              .dx = a.out<T>(0),
                              .dweight = a.out<float>(1),
                              .dbias = bias ? a.out<float>(2) : nullptr,
                              .workspace = a.scratch<double>()});
    };
    return make_kernel(run, group_norm_backward_workspace(view));
  });
  return offer;
}

}  // namespace

std::vector<KernelRow> row_norm_rows() {
  return {
      kernel_row<RowNormOp>("layer_norm", row_norm),
      kernel_row<RowNormOp>("rms_norm", row_norm),
      kernel_row<RowNormOp>("group_norm", group_norm),
      kernel_row<RowNormGradientOp>("layer_norm_gradient", row_norm_gradient),
      kernel_row<RowNormGradientOp>("rms_norm_gradient", row_norm_gradient),
      kernel_row<RowNormGradientOp>("group_norm_gradient", group_norm_gradient),
  };
}

}  // namespace lockstep::kernels::native

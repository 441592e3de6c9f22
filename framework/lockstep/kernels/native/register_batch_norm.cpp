// Batch norm with its epilogues, and the parts of synchronised batch norm.
#include "lockstep/kernels/common/batch_norm_statistics.h"
#include "lockstep/kernels/native/batch_norm.h"
#include "lockstep/kernels/native/rows.h"
#include "lockstep/ops/batch_norm2d_sum.h"
#include "lockstep/ops/batch_norm2d_sync.h"

namespace lockstep::kernels::native {
namespace {

// A matrix (N, C) is in memory what images of one pixel are in channel blocks that C fills; so lanes are channels.
ChannelOffer norm_offer(const KernelRequest& r, std::span<const Layout> offered) {
  ChannelOffer c = channel_offer(r, offered);
  const std::int64_t channels = c.view.channels;
  if (r.inputs[0].shape.rank() == 2 && c.view.block == 1)
    c.view.block = channels % 16 == 0 ? 16 : channels % 8 == 0 ? 8 : 1;
  return c;
}

// The operands that the gradient and the sums of a synchronised norm have alike. A residual's branch is masked by y,
// where an operation `masks`; the output 0 is each one's own.
template <class T>
BatchNormBackward<T> backward_of(const Arguments& a, const BatchNormView& view, bool relu, bool masks, bool adds) {
  return {.view = view,
          .x = a.in<T>(0),
          .dy = a.in<T>(1),
          .addend = input_if<T>(adds, a, 6),
          .y = input_if<T>(masks, a, 5),
          .gamma = a.in<float>(2),
          .beta = input_if<float>(relu && !masks, a, 5),
          .mean = a.in<float>(3),
          .inv_std = a.in<float>(4),
          .relu = relu,
          .dresidual = masks ? a.out<T>(3) : nullptr,
          .dgamma = a.out<float>(1),
          .dbeta = a.out<float>(2),
          .workspace = a.scratch<std::byte>()};
}

// Whether and how the residual, an input, is normalised by the inputs behind it.
struct ResidualRole {
  bool there = false, normalised = false;
  GivenNorm norm(const Arguments& a, std::size_t residual) const {
    if (!normalised) return {};
    return {.gamma = a.in<float>(residual + 1),
            .beta = a.in<float>(residual + 2),
            .mean = a.in<float>(residual + 3),
            .inv_std = a.in<float>(residual + 4)};
  }
};

KernelOffer forward_offer(const KernelRequest& r, ChannelOffer c, double eps, bool relu, ResidualRole residual) {
  c.offer.build = build_for(r.dtype(), [view = c.view, eps, relu, residual]<class T>(T) {
    const auto run = [=](const Arguments& a) {
      batch_norm_forward<T>({.view = view,
                             .x = a.in<T>(0),
                             .residual = input_if<T>(residual.there, a, 3),
                             .of_residual = residual.norm(a, 3),
                             .gamma = a.in<float>(1),
                             .beta = a.in<float>(2),
                             .eps = eps,
                             .relu = relu,
                             .y = a.out<T>(0),
                             .mean = a.out<float>(1),
                             .inv_std = a.out<float>(2),
                             .sums = a.out<double>(3),
                             .workspace = a.scratch<std::byte>()});
    };
    return make_kernel(run, static_cast<std::size_t>(batch_norm_workspace(view)));
  });
  return std::move(c.offer);
}

std::optional<KernelOffer> batch_norm(const KernelRequest& r, std::span<const Layout> offered) {
  if (!supported(r)) return std::nullopt;
  const auto& op = r.as<BatchNorm2dOp>();
  const Epilogue epilogue = op.epilogue();
  KernelOffer offer =
      forward_offer(r, norm_offer(r, offered), op.epsilon(), epilogue.relu, {.there = epilogue.residual});
  offer.normalises = epilogue.residual && epilogue.relu && r.dtype() == DType::F32;
  return offer;
}

std::optional<KernelOffer> batch_norm_sum(const KernelRequest& r, std::span<const Layout> offered) {
  if (r.dtype() != DType::F32) return std::nullopt;
  return forward_offer(r, norm_offer(r, offered), r.as<BatchNorm2dSumOp>().epsilon(), true,
                       {.there = true, .normalised = true});
}

std::optional<KernelOffer> batch_norm_statistics_kernel(const KernelRequest& r, std::span<const Layout> offered) {
  if (!supported(r.inputs[0].dtype)) return std::nullopt;
  auto [offer, view] = norm_offer(r, offered);
  offer.build =
      build_for(r.inputs[0].dtype, [view = view, eps = r.as<BatchNorm2dStatisticsOp>().epsilon()]<class T>(T) {
        const auto run = [=](const Arguments& a) {
          batch_norm_forward_statistics<T>({.view = view,
                                            .x = a.in<T>(0),
                                            .eps = eps,
                                            .mean = a.out<float>(0),
                                            .inv_std = a.out<float>(1),
                                            .sums = a.out<double>(2),
                                            .workspace = a.scratch<std::byte>()});
        };
        return make_kernel(run, static_cast<std::size_t>(batch_norm_workspace(view)));
      });
  return offer;
}

KernelOffer apply_offer(const KernelRequest& r, ChannelOffer c, bool relu, ResidualRole residual) {
  c.offer.build = build_for(r.dtype(), [view = c.view, relu, residual]<class T>(T) {
    return make_kernel([=](const Arguments& a) {
      batch_norm_apply<T>({.view = view,
                           .x = a.in<T>(0),
                           .residual = input_if<T>(residual.there, a, 5),
                           .of_residual = residual.norm(a, 5),
                           .gamma = a.in<float>(1),
                           .beta = a.in<float>(2),
                           .mean = a.in<float>(3),
                           .inv_std = a.in<float>(4),
                           .relu = relu,
                           .y = a.out<T>(0)});
    });
  });
  return std::move(c.offer);
}

std::optional<KernelOffer> batch_norm_normalise(const KernelRequest& r, std::span<const Layout> offered) {
  if (!supported(r)) return std::nullopt;
  const Epilogue epilogue = r.as<BatchNorm2dNormaliseOp>().epilogue();
  return apply_offer(r, norm_offer(r, offered), epilogue.relu, {.there = epilogue.residual});
}

std::optional<KernelOffer> batch_norm_sum_normalise(const KernelRequest& r, std::span<const Layout> offered) {
  if (r.dtype() != DType::F32) return std::nullopt;
  return apply_offer(r, norm_offer(r, offered), true, {.there = true, .normalised = true});
}

std::optional<KernelOffer> batch_norm_inference(const KernelRequest& r, std::span<const Layout> offered) {
  if (!supported(r)) return std::nullopt;
  auto [offer, view] = norm_offer(r, offered);
  offer.in_place_input = 0;
  const auto& op = r.as<BatchNorm2dInferenceOp>();
  offer.build = build_for(r.dtype(), [view = view, eps = op.epsilon(), epilogue = op.epilogue()]<class T>(T) {
    return make_kernel([=](const Arguments& a) {
      batch_norm_apply<T>({.view = view,
                           .x = a.in<T>(0),
                           .residual = input_if<T>(epilogue.residual, a, 5),
                           .gamma = a.in<float>(1),
                           .beta = a.in<float>(2),
                           .mean = a.in<float>(3),
                           .variance = a.in<float>(4),
                           .eps = eps,
                           .relu = epilogue.relu,
                           .y = a.out<T>(0)});
    });
  });
  return offer;
}

std::optional<KernelOffer> batch_norm_gradient(const KernelRequest& r, std::span<const Layout> offered) {
  if (!supported(r)) return std::nullopt;
  auto [offer, view] = norm_offer(r, offered);
  const auto& op = r.as<BatchNorm2dGradientOp>();
  const bool relu = op.epilogue().relu, masks = op.masks(), adds = op.adds();
  offer.in_place_input = 1;
  offer.in_place_output = masks ? 3 : 0;
  offer.build = build_for(r.dtype(), [view = view, relu, masks, adds]<class T>(T) {
    const auto run = [=](const Arguments& a) {
      BatchNormBackward<T> options = backward_of<T>(a, view, relu, masks, adds);
      options.dx = a.out<T>(0);
      batch_norm_backward(options);
    };
    return make_kernel(run, static_cast<std::size_t>(batch_norm_workspace(view)));
  });
  return offer;
}

// The parts of synchronised batch norm.
std::optional<KernelOffer> batch_norm_moments_kernel(const KernelRequest& r, std::span<const Layout> offered) {
  if (!supported(r.inputs[0].dtype)) return std::nullopt;
  auto [offer, view] = norm_offer(r, offered);
  offer.build = build_for(r.inputs[0].dtype, [view = view]<class T>(T) {
    const auto run = [=](const Arguments& a) {
      double* const sums = a.out<double>(0);
      batch_norm_moments<T>({.view = view, .x = a.in<T>(0), .sums = sums, .workspace = a.scratch<std::byte>()});
      sums[2 * view.channels] = static_cast<double>(view.batch * view.spatial);
    };
    return make_kernel(run, static_cast<std::size_t>(batch_norm_workspace(view)));
  });
  return offer;
}

std::optional<KernelOffer> batch_norm_sync(const KernelRequest& r, std::span<const Layout> offered) {
  if (!supported(r)) return std::nullopt;
  auto [offer, view] = norm_offer(r, offered);
  const auto& op = r.as<BatchNorm2dSyncOp>();
  offer.build = build_for(r.dtype(), [view = view, eps = op.epsilon(), epilogue = op.epilogue()]<class T>(T) {
    return make_kernel([=](const Arguments& a) {
      float *mean = a.out<float>(1), *inv_std = a.out<float>(2);
      batch_norm_statistics(view.channels, a.in<double>(3), eps, mean, inv_std);
      batch_norm_apply<T>({.view = view,
                           .x = a.in<T>(0),
                           .residual = input_if<T>(epilogue.residual, a, 4),
                           .gamma = a.in<float>(1),
                           .beta = a.in<float>(2),
                           .mean = mean,
                           .inv_std = inv_std,
                           .relu = epilogue.relu,
                           .y = a.out<T>(0)});
    });
  });
  return offer;
}

std::optional<KernelOffer> batch_norm_gradient_sums_kernel(const KernelRequest& r, std::span<const Layout> offered) {
  if (!supported(r.inputs[0].dtype)) return std::nullopt;
  auto [offer, view] = norm_offer(r, offered);
  const auto& op = r.as<BatchNorm2dGradientSumsOp>();
  const bool relu = op.relu(), masks = op.masks(), adds = op.adds();
  if (masks) {
    offer.in_place_input = 1;
    offer.in_place_output = 3;
  }
  offer.build = build_for(r.inputs[0].dtype, [view = view, relu, masks, adds]<class T>(T) {
    const auto run = [=](const Arguments& a) {
      double* const sums = a.out<double>(0);
      batch_norm_gradient_sums(backward_of<T>(a, view, relu, masks, adds), sums);
      sums[2 * view.channels] = static_cast<double>(view.batch * view.spatial);
    };
    return make_kernel(run, static_cast<std::size_t>(batch_norm_workspace(view)));
  });
  return offer;
}

std::optional<KernelOffer> batch_norm_gradient_apply_kernel(const KernelRequest& r, std::span<const Layout> offered) {
  if (!supported(r)) return std::nullopt;
  auto [offer, view] = norm_offer(r, offered);
  offer.in_place_input = 1;
  offer.build = build_for(r.dtype(), [view = view, relu = r.inputs.size() > 6]<class T>(T) {
    return make_kernel([=](const Arguments& a) {
      const BatchNormBackward<T> options{.view = view,
                                         .x = a.in<T>(0),
                                         .dy = a.in<T>(1),
                                         .gamma = a.in<float>(2),
                                         .beta = input_if<float>(relu, a, 6),
                                         .mean = a.in<float>(3),
                                         .inv_std = a.in<float>(4),
                                         .relu = relu,
                                         .dx = a.out<T>(0)};
      const double* const sums = a.in<double>(5);
      batch_norm_gradient_apply(options, sums, std::max(sums[2 * view.channels], 1.0));
    });
  });
  return offer;
}

}  // namespace

std::vector<KernelRow> batch_norm_rows() {
  return {
      kernel_row<BatchNorm2dOp>("batch_norm2d", batch_norm),
      kernel_row<BatchNorm2dSumOp>("batch_norm2d_sum", batch_norm_sum),
      kernel_row<BatchNorm2dSumNormaliseOp>("batch_norm2d_sum_normalise", batch_norm_sum_normalise),
      kernel_row<BatchNorm2dStatisticsOp>("batch_norm2d_statistics", batch_norm_statistics_kernel),
      kernel_row<BatchNorm2dNormaliseOp>("batch_norm2d_normalise", batch_norm_normalise),
      kernel_row<BatchNorm2dInferenceOp>("batch_norm2d_inference", batch_norm_inference),
      kernel_row<BatchNorm2dGradientOp>("batch_norm2d_gradient", batch_norm_gradient),
      kernel_row<BatchNorm2dMomentsOp>("batch_norm2d_moments", batch_norm_moments_kernel),
      kernel_row<BatchNorm2dSyncOp>("batch_norm2d_sync", batch_norm_sync),
      kernel_row<BatchNorm2dGradientSumsOp>("batch_norm2d_gradient_sums", batch_norm_gradient_sums_kernel),
      kernel_row<BatchNorm2dGradientApplyOp>("batch_norm2d_gradient_apply", batch_norm_gradient_apply_kernel),
  };
}

}  // namespace lockstep::kernels::native

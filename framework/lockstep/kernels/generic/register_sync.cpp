// Sums over ranks, and the parts of synchronised batch norm.
#include "lockstep/kernels/common/batch_norm_statistics.h"
#include "lockstep/kernels/generic/batch_norm.h"
#include "lockstep/kernels/generic/elementwise.h"
#include "lockstep/kernels/generic/rows.h"
#include "lockstep/ops/batch_norm2d_sync.h"

namespace lockstep::kernels::generic {
namespace {

// f32 values are added in f64.
std::optional<KernelOffer> all_reduce_sum_kernel(const KernelRequest& r, std::span<const Layout>) {
  KernelOffer offer = plain_offer(r);
  const std::int64_t n = r.inputs[0].shape.elements();
  offer.build = [n, collective = r.as<AllReduceSumOp>().collective(), dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      const auto run = [=](const Arguments& a) {
        const std::span sums(a.scratch<double>(), static_cast<std::size_t>(n));
        std::copy_n(a.in<T>(0), n, sums.begin());
        collective->allreduce_sum(sums);
        std::ranges::transform(sums, a.out<T>(0), [](double sum) { return static_cast<T>(sum); });
      };
      return make_kernel(run, static_cast<std::size_t>(n) * sizeof(double));
    });
  };
  return offer;
}

std::optional<KernelOffer> moments(const KernelRequest& r, std::span<const Layout> offered) {
  auto [offer, view] = channel_offer(r, offered);
  offer.build = [view = view, dtype = r.inputs[0].dtype] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel([=](const Arguments& a) { batch_norm_moments(view, a.in<T>(0), a.out<double>(0)); });
    });
  };
  return offer;
}

std::optional<KernelOffer> synced_norm(const KernelRequest& r, std::span<const Layout> offered) {
  auto [offer, view] = channel_offer(r, offered);
  const auto& op = r.as<BatchNorm2dSyncOp>();
  offer.build = [view = view, epsilon = op.epsilon(), epilogue = op.epilogue(), dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel([=](const Arguments& a) {
        T *y = a.out<T>(0), *mean = a.out<T>(1), *inverse = a.out<T>(2);
        batch_norm_statistics(view.channels, a.in<double>(3), epsilon, mean, inverse);
        batch_norm_normalise(view, a.in<T>(0), a.in<T>(1), a.in<T>(2), mean, inverse, y);
        finish(epilogue, view.elements(), epilogue.residual ? a.in<T>(4) : nullptr, y);
      });
    });
  };
  return offer;
}

std::optional<KernelOffer> gradient_sums(const KernelRequest& r, std::span<const Layout> offered) {
  auto [offer, view] = channel_offer(r, offered);
  const auto& op = r.as<BatchNorm2dGradientSumsOp>();
  const bool relu = op.relu(), masked = op.masks(), adds = op.adds();
  const DType dtype = r.inputs[0].dtype;
  const std::size_t mask_bytes =
      relu && !masked ? static_cast<std::size_t>(view.elements()) * size_of(dtype) : std::size_t{0};
  offer.build = [=, view = view] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      const auto run = [=](const Arguments& a) {
        const T *x = a.in<T>(0), *dy = a.in<T>(1), *mean = a.in<T>(3), *inverse = a.in<T>(4);
        if (masked) {
          T* const dresidual = a.out<T>(3);
          if (adds) add(view.elements(), dy, a.in<T>(6), dresidual);
          relu_backward(view.elements(), a.in<T>(5), adds ? dresidual : dy, dresidual);
          dy = dresidual;
        } else if (relu) {
          batch_norm_mask(view, x, dy, a.in<T>(2), a.in<T>(5), mean, inverse, a.scratch<T>());
          dy = a.scratch<T>();
        }
        batch_norm_gradient_sums(view, x, dy, mean, a.out<double>(0));
        batch_norm_parameter_gradients(view.channels, a.out<double>(0), inverse, a.out<T>(1), a.out<T>(2));
      };
      return make_kernel(run, mask_bytes);
    });
  };
  return offer;
}

std::optional<KernelOffer> gradient_apply(const KernelRequest& r, std::span<const Layout> offered) {
  auto [offer, view] = channel_offer(r, offered);
  offer.in_place_input = 1;
  offer.build = [view = view, relu = r.inputs.size() > 6, dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel([=](const Arguments& a) {
        const T *x = a.in<T>(0), *dy = a.in<T>(1), *gamma = a.in<T>(2), *mean = a.in<T>(3), *inverse = a.in<T>(4);
        T* dx = a.out<T>(0);
        if (relu) {
          batch_norm_mask(view, x, dy, gamma, a.in<T>(6), mean, inverse, dx);
          dy = dx;
        }
        batch_norm_gradient_apply(view, x, dy, gamma, mean, inverse, a.in<double>(5), dx);
      });
    });
  };
  return offer;
}

}  // namespace

std::vector<KernelRow> synchronised_rows() {
  return {
      kernel_row<AllReduceSumOp>("all_reduce_sum", all_reduce_sum_kernel),
      kernel_row<BatchNorm2dMomentsOp>("batch_norm2d_moments", moments),
      kernel_row<BatchNorm2dSyncOp>("batch_norm2d_sync", synced_norm),
      kernel_row<BatchNorm2dGradientSumsOp>("batch_norm2d_gradient_sums", gradient_sums),
      kernel_row<BatchNorm2dGradientApplyOp>("batch_norm2d_gradient_apply", gradient_apply),
  };
}

}  // namespace lockstep::kernels::generic

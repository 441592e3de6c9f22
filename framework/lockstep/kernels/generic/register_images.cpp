// Batch normalisation, channel sums and pooling.
#include <cmath>

#include "lockstep/kernels/generic/batch_norm.h"
#include "lockstep/kernels/generic/elementwise.h"
#include "lockstep/kernels/generic/pool.h"
#include "lockstep/kernels/generic/reduce.h"
#include "lockstep/kernels/generic/rows.h"
#include "lockstep/ops/batch_norm2d.h"
#include "lockstep/ops/pool.h"
#include "lockstep/ops/reduce.h"

namespace lockstep::kernels::generic {
namespace {

std::optional<KernelOffer> batch_norm(const KernelRequest& r, std::span<const Layout> offered) {
  auto [offer, view] = channel_offer(r, offered);
  const auto& op = r.as<BatchNorm2dOp>();
  offer.build = [view = view, epsilon = op.epsilon(), epilogue = op.epilogue(), dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel([=](const Arguments& a) {
        batch_norm_forward(view, a.in<T>(0), a.in<T>(1), a.in<T>(2), epsilon, a.out<T>(0), a.out<T>(1), a.out<T>(2),
                           a.out<double>(3));
        finish(epilogue, view.elements(), epilogue.residual ? a.in<T>(3) : nullptr, a.out<T>(0));
      });
    });
  };
  return offer;
}

std::optional<KernelOffer> batch_norm_normalise_kernel(const KernelRequest& r, std::span<const Layout> offered) {
  auto [offer, view] = channel_offer(r, offered);
  offer.build = [view = view, epilogue = r.as<BatchNorm2dNormaliseOp>().epilogue(), dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel([=](const Arguments& a) {
        batch_norm_normalise(view, a.in<T>(0), a.in<T>(1), a.in<T>(2), a.in<T>(3), a.in<T>(4), a.out<T>(0));
        finish(epilogue, view.elements(), epilogue.residual ? a.in<T>(5) : nullptr, a.out<T>(0));
      });
    });
  };
  return offer;
}

std::optional<KernelOffer> batch_norm_gradient(const KernelRequest& r, std::span<const Layout> offered) {
  auto [offer, view] = channel_offer(r, offered);
  const auto& op = r.as<BatchNorm2dGradientOp>();
  const bool relu = op.epilogue().relu, masked = op.masks(), adds = op.adds();
  if (!masked) offer.in_place_input = 1;
  offer.build = [view = view, relu, masked, adds, dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel([=](const Arguments& a) {
        const T *x = a.in<T>(0), *dy = a.in<T>(1), *gamma = a.in<T>(2), *mean = a.in<T>(3), *inverse = a.in<T>(4);
        T* dx = a.out<T>(0);
        if (masked) {
          T* const dresidual = a.out<T>(3);
          if (adds) {
            add(view.elements(), dy, a.in<T>(6), dresidual);
            dy = dresidual;
          }
          relu_backward(view.elements(), a.in<T>(5), dy, dresidual);
          dy = dresidual;
        } else if (relu) {
          batch_norm_mask(view, x, dy, gamma, a.in<T>(5), mean, inverse, dx);
          dy = dx;
        }
        batch_norm_backward(view, x, dy, gamma, mean, inverse, dx, a.out<T>(1), a.out<T>(2));
      });
    });
  };
  return offer;
}

std::optional<KernelOffer> batch_norm_inference_kernel(const KernelRequest& r, std::span<const Layout> offered) {
  auto [offer, view] = channel_offer(r, offered);
  offer.in_place_input = 0;
  const auto& op = r.as<BatchNorm2dInferenceOp>();
  offer.build = [view = view, epsilon = op.epsilon(), epilogue = op.epilogue(), dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel([=](const Arguments& a) {
        batch_norm_inference(view, a.in<T>(0), a.in<T>(1), a.in<T>(2), a.in<T>(3), a.in<T>(4), epsilon, a.out<T>(0));
        finish(epilogue, view.elements(), epilogue.residual ? a.in<T>(5) : nullptr, a.out<T>(0));
      });
    });
  };
  return offer;
}

std::optional<KernelOffer> fold_batch_norm(const KernelRequest& r, std::span<const Layout>) {
  KernelOffer offer = plain_offer(r);
  const std::int64_t filters = r.inputs[0].shape[0], per_filter = r.inputs[0].shape.tail().elements();
  offer.build = [=, epsilon = r.as<FoldBatchNormOp>().epsilon(), bias = r.inputs.size() > 5, dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel([=](const Arguments& a) {
        for (std::int64_t f = 0; f < filters; ++f) {
          const double s = static_cast<double>(a.in<T>(1)[f]) / std::sqrt(static_cast<double>(a.in<T>(4)[f]) + epsilon);
          const double shift = (bias ? static_cast<double>(a.in<T>(5)[f]) : 0) - static_cast<double>(a.in<T>(3)[f]);
          scale_shift(per_filter, static_cast<T>(s), T(0), a.in<T>(0) + f * per_filter, a.out<T>(0) + f * per_filter);
          a.out<T>(1)[f] = static_cast<T>(static_cast<double>(a.in<T>(2)[f]) + shift * s);
        }
      });
    });
  };
  return offer;
}

std::optional<KernelOffer> batch_norm_inference_gradient(const KernelRequest& r, std::span<const Layout> offered) {
  auto [offer, view] = channel_offer(r, offered);
  offer.in_place_input = 1;
  offer.build = [view = view, epsilon = r.as<BatchNorm2dInferenceGradientOp>().epsilon(), dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel([=](const Arguments& a) {
        batch_norm_inference_backward(view, a.in<T>(0), a.in<T>(1), a.in<T>(2), a.in<T>(3), a.in<T>(4), epsilon,
                                      a.out<T>(0), a.out<T>(1), a.out<T>(2));
      });
    });
  };
  return offer;
}

std::optional<KernelOffer> channel_sum_kernel(const KernelRequest& r, std::span<const Layout> offered) {
  auto [offer, view] = channel_offer(r, offered);
  const bool matrix = r.inputs[0].shape.rank() == 2;
  offer.build = [view = view, matrix, dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel([=](const Arguments& a) {
        if (matrix && view.block == 1) {
          column_sum(view.batch, view.channels, a.in<T>(0), a.out<T>(0));
        } else {
          channel_sum(view, a.in<T>(0), a.out<T>(0));
        }
      });
    });
  };
  return offer;
}

// One window over the whole image has simpler loops.
bool is_global(const PoolGeometry& g) {
  const bool whole = g.kernel_d == g.in_d && g.kernel_h == g.in_h && g.kernel_w == g.in_w;
  return whole && g.padding_d == 0 && g.padding_h == 0 && g.padding_w == 0;
}

// Calls f with a value of the type in which positions of maxima are kept.
template <class F>
std::unique_ptr<Kernel> build_indexed(DType dtype, F f) {
  return dtype == DType::U8 ? f(std::uint8_t{}) : f(std::int32_t{});
}

std::optional<KernelOffer> max_pool(const KernelRequest& r, std::span<const Layout> offered) {
  KernelOffer offer = plain_offer(r);
  PoolGeometry g = pool_geometry(r.as<PoolOp>().options(), r.inputs[0].shape);
  g.block = known_block(r.inputs[0].shape, offered[0]);
  offer.inputs[0] = Layout::channels_blocked(r.inputs[0].shape, g.block);
  std::ranges::fill(offer.outputs, Layout::channels_blocked(r.outputs[0].shape, g.block));
  offer.build = [g, dtype = r.dtype(), positions = r.outputs[1].dtype] {
    return build_indexed(positions, [&](auto index) {
      using I = decltype(index);
      const auto build = [&](auto tag) {
        using T = decltype(tag);
        return make_kernel([g](const Arguments& a) { max_pool_forward(g, a.in<T>(0), a.out<T>(0), a.out<I>(1)); });
      };
      return dtype == DType::BF16 ? build(BFloat16{}) : build_typed(dtype, build);
    });
  };
  return offer;
}

std::optional<KernelOffer> max_pool_gradient(const KernelRequest& r, std::span<const Layout> offered) {
  KernelOffer offer = plain_offer(r);
  PoolGeometry g = pool_geometry(r.as<PoolGradientOp>().options(), r.outputs[0].shape);
  g.block = known_block(r.inputs[1].shape, offered[1]);
  std::ranges::fill(offer.inputs, Layout::channels_blocked(r.inputs[1].shape, g.block));
  offer.outputs[0] = Layout::channels_blocked(r.outputs[0].shape, g.block);
  offer.build = [g, dtype = r.dtype(), positions = r.inputs[1].dtype] {
    return build_indexed(positions, [&](auto index) {
      using I = decltype(index);
      const auto build = [&](auto tag) {
        using T = decltype(tag);
        return make_kernel([g](const Arguments& a) { max_pool_backward(g, a.in<T>(0), a.in<I>(1), a.out<T>(0)); });
      };
      return dtype == DType::BF16 ? build(BFloat16{}) : build_typed(dtype, build);
    });
  };
  return offer;
}

std::optional<KernelOffer> average_pool(const KernelRequest& r, std::span<const Layout>) {
  KernelOffer offer = plain_offer(r);
  offer.build = [g = pool_geometry(r.as<PoolOp>().options(), r.inputs[0].shape), dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel([g](const Arguments& a) {
        if (is_global(g)) {
          global_average_pool_forward(g.batch * g.channels, g.in_spatial(), a.in<T>(0), a.out<T>(0));
        } else {
          average_pool_forward(g, a.in<T>(0), a.out<T>(0));
        }
      });
    });
  };
  return offer;
}

std::optional<KernelOffer> average_pool_gradient(const KernelRequest& r, std::span<const Layout>) {
  KernelOffer offer = plain_offer(r);
  offer.build = [g = pool_geometry(r.as<PoolGradientOp>().options(), r.outputs[0].shape), dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel([g](const Arguments& a) {
        if (is_global(g)) {
          global_average_pool_backward(g.batch * g.channels, g.in_spatial(), a.in<T>(0), a.out<T>(0));
        } else {
          average_pool_backward(g, a.in<T>(0), a.out<T>(0));
        }
      });
    });
  };
  return offer;
}

}  // namespace

std::vector<KernelRow> image_rows() {
  return {
      kernel_row<BatchNorm2dOp>("batch_norm2d", batch_norm),
      kernel_row<BatchNorm2dNormaliseOp>("batch_norm2d_normalise", batch_norm_normalise_kernel),
      kernel_row<FoldBatchNormOp>("fold_batch_norm", fold_batch_norm),
      kernel_row<BatchNorm2dGradientOp>("batch_norm2d_gradient", batch_norm_gradient),
      kernel_row<BatchNorm2dInferenceOp>("batch_norm2d_inference", batch_norm_inference_kernel),
      kernel_row<BatchNorm2dInferenceGradientOp>("batch_norm2d_inference_gradient", batch_norm_inference_gradient),
      kernel_row<ChannelSumOp>("channel_sum", channel_sum_kernel),
      kernel_row<PoolOp>("average_pool1d", average_pool),
      kernel_row<PoolGradientOp>("average_pool1d_gradient", average_pool_gradient),
      kernel_row<PoolOp>("average_pool2d", average_pool),
      kernel_row<PoolGradientOp>("average_pool2d_gradient", average_pool_gradient),
      kernel_row<PoolOp>("average_pool3d", average_pool),
      kernel_row<PoolGradientOp>("average_pool3d_gradient", average_pool_gradient),
      kernel_row<PoolOp>("max_pool1d", max_pool),
      kernel_row<PoolGradientOp>("max_pool1d_gradient", max_pool_gradient),
      kernel_row<PoolOp>("max_pool2d", max_pool),
      kernel_row<PoolGradientOp>("max_pool2d_gradient", max_pool_gradient),
      kernel_row<PoolOp>("max_pool3d", max_pool),
      kernel_row<PoolGradientOp>("max_pool3d_gradient", max_pool_gradient),
  };
}

}  // namespace lockstep::kernels::generic

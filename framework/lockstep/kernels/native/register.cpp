// The table of our own vectorised kernels: batch norm with its epilogues, layer and RMS norm, the pointwise algebra,
// attention, casts, max pooling and small convolutions.
#include <fmt/format.h>

#include "lockstep/kernels/native/convolution.h"
#include "lockstep/kernels/native/elementwise.h"
#include "lockstep/kernels/native/pool.h"
#include "lockstep/kernels/native/register_winograd.h"
#include "lockstep/kernels/native/rows.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/convolution_of_norm.h"
#include "lockstep/ops/pool.h"

namespace lockstep::kernels::native {
namespace {

std::optional<KernelOffer> max_pool(const KernelRequest& r, std::span<const Layout> offered) {
  if (!supported(r) || r.outputs[1].dtype != DType::U8) return std::nullopt;
  PoolGeometry g = pool_geometry(r.as<PoolOp>().options(), r.inputs[0].shape);
  g.block = known_block(r.inputs[0].shape, offered[0]);
  if (!supports_max_pool_forward(g)) return std::nullopt;
  KernelOffer offer = plain_offer(r);
  offer.inputs[0] = Layout::channels_blocked(r.inputs[0].shape, g.block);
  std::ranges::fill(offer.outputs, Layout::channels_blocked(r.outputs[0].shape, g.block));
  offer.build = build_for(r.dtype(), [g]<class T>(T) {
    return make_kernel(
        [g](const Arguments& a) { max_pool_forward(g, a.in<T>(0), a.out<T>(0), a.out<std::uint8_t>(1)); });
  });
  return offer;
}

std::optional<KernelOffer> max_pool_gradient(const KernelRequest& r, std::span<const Layout> offered) {
  if (!supported(r) || r.inputs[1].dtype != DType::U8) return std::nullopt;
  PoolGeometry g = pool_geometry(r.as<PoolGradientOp>().options(), r.outputs[0].shape);
  g.block = known_block(r.inputs[1].shape, offered[1]);
  if (!supports_max_pool_backward(g)) return std::nullopt;
  KernelOffer offer = plain_offer(r);
  std::ranges::fill(offer.inputs, Layout::channels_blocked(r.inputs[1].shape, g.block));
  offer.outputs[0] = Layout::channels_blocked(r.outputs[0].shape, g.block);
  offer.build = build_for(r.dtype(), [g]<class T>(T) {
    return make_kernel(
        [g](const Arguments& a) { max_pool_backward(g, a.in<T>(0), a.in<std::uint8_t>(1), a.out<T>(0)); });
  });
  return offer;
}

std::optional<KernelOffer> convolution(const KernelRequest& r, std::span<const Layout>) {
  if (auto offer = winograd_forward(r)) return offer;
  const auto& op = r.as<ConvolutionOp>();
  const auto g = convolution_geometry(op.options(), r.inputs[0].shape, r.inputs[1].shape);
  if (r.dtype() != DType::F32 || op.epilogue().residual || !direct_forward_wins(g, r.wants_portable()))
    return std::nullopt;
  KernelOffer offer = plain_offer(r);
  offer.build = [g, relu = op.epilogue().relu, bias = op.has_bias(r.inputs.size())] {
    auto kernel = std::make_shared<const DirectConvolution>(g, DirectConvolution::Direction::Forward);
    const auto run = [=](const Arguments& a) {
      kernel->run({.x = a.in<float>(0),
                   .w = a.in<float>(1),
                   .bias = input_if<float>(bias, a, 2),
                   .relu = relu,
                   .y = a.out<float>(0),
                   .workspace = a.scratch<float>()});
    };
    return make_kernel(run, kernel->workspace_bytes());
  };
  return offer;
}

std::optional<KernelOffer> convolution_data(const KernelRequest& r, std::span<const Layout>) {
  if (auto offer = winograd_backward_data(r)) return offer;
  const auto g =
      convolution_geometry(r.as<ConvolutionBackwardDataOp>().options(), r.outputs[0].shape, r.inputs[1].shape);
  if (r.dtype() != DType::F32 || !direct_backward_data_wins(g, r.wants_portable())) return std::nullopt;
  KernelOffer offer = plain_offer(r);
  offer.build = [g] {
    auto kernel = std::make_shared<const DirectConvolution>(g, DirectConvolution::Direction::BackwardData);
    const auto run = [=](const Arguments& a) {
      kernel->run({.x = a.in<float>(0), .w = a.in<float>(1), .y = a.out<float>(0), .workspace = a.scratch<float>()});
    };
    return make_kernel(run, kernel->workspace_bytes());
  };
  return offer;
}

std::optional<KernelOffer> convolution_weights(const KernelRequest& r, std::span<const Layout>) {
  if (auto offer = winograd_backward_weights(r)) return offer;
  const auto& op = r.as<ConvolutionBackwardWeightsOp>();
  const auto g = convolution_geometry(op.options(), r.inputs[0].shape, r.outputs[0].shape);
  if (r.has_bf16() || r.dtype() != DType::F32 || !direct_backward_weights_wins(g, r.wants_portable()))
    return std::nullopt;
  KernelOffer offer = plain_offer(r);
  offer.build = [g, bias = r.outputs.size() > 1] {
    return weight_gradient_kernel(std::make_shared<const DirectWeightGradient>(g), bias);
  };
  return offer;
}

std::optional<KernelOffer> convolution_of_norm(const KernelRequest& r, std::span<const Layout>) {
  return winograd_forward_of_norm(r);
}

std::optional<KernelOffer> convolution_of_norm_weights(const KernelRequest& r, std::span<const Layout>) {
  return winograd_backward_weights_of_norm(r);
}

std::optional<KernelOffer> cast_kernel(const KernelRequest& r, std::span<const Layout> offered) {
  if (r.inputs[0].dtype == DType::F64 || r.outputs[0].dtype == DType::F64) return std::nullopt;
  KernelOffer offer = plain_offer(r);
  offer.inputs[0] = offer.outputs[0] = offered[0];
  const std::int64_t n = offered[0].storage_elements(r.inputs[0].shape);
  offer.build = [n, narrows = r.dtype() == DType::BF16] {
    return narrows ? make_kernel([n](const Arguments& a) { convert(n, a.in<float>(0), a.out<Bf16>(0)); })
                   : make_kernel([n](const Arguments& a) { convert(n, a.in<Bf16>(0), a.out<float>(0)); });
  };
  return offer;
}

// Puts the level of instructions before the names of offers. Bits are the same at every level, except in bf16, whose
// products of pairs follow the processor.
KernelFactory portable_by_level(KernelFactory factory) {
  return [factory = std::move(factory)](const KernelRequest& request, std::span<const Layout> offered) {
    std::vector<KernelOffer> offers = factory(request, offered);
    for (KernelOffer& offer : offers) {
      const std::string own = offer.implementation.empty() ? "" : ":" + offer.implementation;
      offer.implementation = fmt::format("native:{}{}", native_level(), own);
      offer.portable = !request.has_bf16();
    }
    return offers;
  };
}

}  // namespace

void register_products(KernelRegistry& registry, Place place) {
  registry.add("native", product_rows(place), portable_by_level);
}

}  // namespace lockstep::kernels::native

namespace lockstep::kernels {

void register_native_kernels(KernelRegistry& registry) {
  using namespace native;
  add_blocked_convolutions(registry, true);
  for (const auto part : {batch_norm_rows, row_norm_rows, pointwise_rows, attention_rows})
    registry.add("native", part(), portable_by_level);
  register_products(registry, Place::First);
  registry.add("native",
               {
                   kernel_row<ConvolutionOp>("conv1d", convolution),
                   kernel_row<ConvolutionBackwardDataOp>("conv1d_backward_data", convolution_data),
                   kernel_row<ConvolutionBackwardWeightsOp>("conv1d_backward_weights", convolution_weights),
                   kernel_row<PoolOp>("max_pool1d", max_pool),
                   kernel_row<PoolGradientOp>("max_pool1d_gradient", max_pool_gradient),
                   kernel_row<ConvolutionOp>("conv2d", convolution),
                   kernel_row<ConvolutionBackwardDataOp>("conv2d_backward_data", convolution_data),
                   kernel_row<ConvolutionBackwardWeightsOp>("conv2d_backward_weights", convolution_weights),
                   kernel_row<ConvolutionOfNormOp>("conv2d_of_norm", convolution_of_norm),
                   kernel_row<ConvolutionOfNormBackwardWeightsOp>("conv2d_of_norm_backward_weights",
                                                                  convolution_of_norm_weights),
                   kernel_row<ConvolutionOp>("conv3d", convolution),
                   kernel_row<ConvolutionBackwardDataOp>("conv3d_backward_data", convolution_data),
                   kernel_row<ConvolutionBackwardWeightsOp>("conv3d_backward_weights", convolution_weights),
                   kernel_row<PoolOp>("max_pool2d", max_pool),
                   kernel_row<PoolGradientOp>("max_pool2d_gradient", max_pool_gradient),
                   kernel_row<PoolOp>("max_pool3d", max_pool),
                   kernel_row<PoolGradientOp>("max_pool3d_gradient", max_pool_gradient),
                   kernel_row<CastOp>("cast", cast_kernel),
               },
               portable_by_level);
}

}  // namespace lockstep::kernels

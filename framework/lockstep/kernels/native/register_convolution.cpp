// Offers of direct convolutions on blocks of channels. They come in two rows: where they should be the fastest they are
// asked for before oneDNN's, elsewhere after oneDNN's and before the generic ones.
#include <fmt/format.h>

#include <algorithm>

#include "lockstep/kernels/native/blocked_convolution.h"
#include "lockstep/kernels/native/rows.h"
#include "lockstep/ops/convolution.h"

namespace lockstep::kernels::native {
namespace {

constexpr std::int64_t kBlock = kLanes;

// The dimensions row-major, and the blocks inside.
Layout blocked(const Shape& shape, std::vector<Layout::Block> blocks) {
  Layout layout{.padded = shape.dims(), .strides = shape.dims(), .blocks = std::move(blocks)};
  std::int64_t stride = 1;
  for (const Layout::Block& b : layout.blocks) {
    auto& size = layout.padded[static_cast<std::size_t>(b.dim)];
    size = (size + b.size - 1) / b.size * b.size;
    stride *= b.size;
  }
  for (std::size_t d = layout.padded.size(); d-- > 0;) {
    layout.strides[d] = stride;
    const bool in_blocks =
        std::ranges::any_of(layout.blocks, [&](Layout::Block b) { return b.dim == static_cast<int>(d); });
    stride *= layout.padded[d] / (in_blocks ? kBlock : 1);
  }
  return layout;
}

Layout activations(const Shape& shape) { return Layout::channels_blocked(shape, kBlock); }
// Of forward and of the weight gradient; and of backward data.
Layout weights(const ConvolutionGeometry& g, const Shape& shape) {
  const BlockedChannels channels(g);
  if (channels.depthwise || channels.plain) return blocked(shape, {{0, kBlock}});
  return blocked(shape, {{1, kBlock}, {0, kBlock}});
}
Layout backward_weights(const ConvolutionGeometry& g, const Shape& shape) {
  if (BlockedChannels(g).depthwise) return blocked(shape, {{0, kBlock}});
  return blocked(shape, {{0, kBlock}, {1, kBlock}});
}
Layout inputs(const ConvolutionGeometry& g, const Shape& shape) {
  return BlockedChannels(g).plain ? Layout{} : activations(shape);
}

// Whether a row offers a convolution: `first` is the one that comes before oneDNN's.
bool is_offered(const KernelRequest& r, const ConvolutionGeometry& g, BlockedDirection direction, bool first) {
  return !r.has_bf16() && r.dtype() == DType::F32 && supports_blocked(g) && blocked_wins(g, direction) == first;
}

std::optional<KernelOffer> forward(const KernelRequest& r, bool first) {
  const auto& op = r.as<ConvolutionOp>();
  const auto g = convolution_geometry(op.options(), r.inputs[0].shape, r.inputs[1].shape);
  if (!is_offered(r, g, BlockedDirection::Forward, first)) return std::nullopt;
  KernelOffer offer = plain_offer(r);
  offer.inputs[0] = inputs(g, r.inputs[0].shape);
  offer.inputs[1] = weights(g, r.inputs[1].shape);
  offer.outputs[0] = activations(r.outputs[0].shape);
  const bool bias = op.has_bias(r.inputs.size()), residual = op.epilogue().residual;
  if (residual) offer.inputs.back() = offer.outputs[0];
  offer.build = [g, bias, residual, relu = op.epilogue().relu] {
    auto kernel = std::make_shared<const BlockedConvolution>(g, BlockedDirection::Forward);
    const auto run = [=](const Arguments& a) {
      kernel->run({.x = a.in<float>(0),
                   .w = a.in<float>(1),
                   .bias = input_if<float>(bias, a, 2),
                   .residual = input_if<float>(residual, a, bias ? 3 : 2),
                   .relu = relu,
                   .y = a.out<float>(0),
                   .workspace = a.scratch<float>()});
    };
    return make_kernel(run, kernel->workspace_bytes());
  };
  return offer;
}

std::optional<KernelOffer> data_gradient(const KernelRequest& r, bool first) {
  const auto g =
      convolution_geometry(r.as<ConvolutionBackwardDataOp>().options(), r.outputs[0].shape, r.inputs[1].shape);
  if (!is_offered(r, g, BlockedDirection::BackwardData, first)) return std::nullopt;
  KernelOffer offer = plain_offer(r);
  offer.inputs = {activations(r.inputs[0].shape), backward_weights(g, r.inputs[1].shape)};
  offer.outputs[0] = activations(r.outputs[0].shape);
  offer.build = [g] {
    auto kernel = std::make_shared<const BlockedConvolution>(g, BlockedDirection::BackwardData);
    return make_kernel(
        [=](const Arguments& a) { kernel->run({.x = a.in<float>(0), .w = a.in<float>(1), .y = a.out<float>(0)}); });
  };
  return offer;
}

std::optional<KernelOffer> weight_gradient(const KernelRequest& r, bool first) {
  const auto& op = r.as<ConvolutionBackwardWeightsOp>();
  const auto g = convolution_geometry(op.options(), r.inputs[0].shape, r.outputs[0].shape);
  if (!is_offered(r, g, BlockedDirection::BackwardWeights, first)) return std::nullopt;
  KernelOffer offer = plain_offer(r);
  offer.inputs = {inputs(g, r.inputs[0].shape), activations(r.inputs[1].shape)};
  offer.outputs[0] = weights(g, r.outputs[0].shape);
  offer.build = [g, bias = r.outputs.size() > 1] {
    return weight_gradient_kernel(std::make_shared<const BlockedWeightGradient>(g), bias);
  };
  return offer;
}

KernelFactory named_direct(KernelFactory factory) {
  return [factory = std::move(factory)](const KernelRequest& request, std::span<const Layout> offered) {
    std::vector<KernelOffer> offers = factory(request, offered);
    for (KernelOffer& offer : offers) {
      offer.implementation = fmt::format("native:{}:direct", native_level());
      offer.portable = true;
    }
    return offers;
  };
}

}  // namespace

void add_blocked_convolutions(KernelRegistry& registry, bool first) {
  const auto row = [first](auto offer) {
    return [=](const KernelRequest& r, std::span<const Layout>) { return offer(r, first); };
  };
  std::vector<KernelRow> rows;
  for (const char* name : {"conv1d", "conv2d", "conv3d"}) rows.push_back(kernel_row<ConvolutionOp>(name, row(forward)));
  for (const char* name : {"conv1d_backward_data", "conv2d_backward_data", "conv3d_backward_data"})
    rows.push_back(kernel_row<ConvolutionBackwardDataOp>(name, row(data_gradient)));
  for (const char* name : {"conv1d_backward_weights", "conv2d_backward_weights", "conv3d_backward_weights"})
    rows.push_back(kernel_row<ConvolutionBackwardWeightsOp>(name, row(weight_gradient)));
  registry.add("native", std::move(rows), named_direct);
}

}  // namespace lockstep::kernels::native

namespace lockstep::kernels {

void register_native_convolutions(KernelRegistry& registry) { native::add_blocked_convolutions(registry, false); }

}  // namespace lockstep::kernels

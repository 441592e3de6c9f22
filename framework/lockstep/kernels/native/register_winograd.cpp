// Offers of Winograd's convolutions, where winograd_rule.cpp expects them to be the fastest.
#include "lockstep/kernels/native/register_winograd.h"

#include "lockstep/kernels/common/offers.h"
#include "lockstep/kernels/native/rows.h"
#include "lockstep/kernels/native/winograd.h"
#include "lockstep/ops/convolution_of_norm.h"

namespace lockstep::kernels::native {
namespace {

bool are(DType dtype, std::span<const Type> types) {
  return std::ranges::all_of(types, [&](const Type& t) { return t.dtype == dtype; });
}

bool is_f32(const KernelRequest& r) { return are(DType::F32, r.inputs) && are(DType::F32, r.outputs); }

// The tile of a weight gradient of bf16 images, or 0 where oneDNN's direct kernels are left to compute it. Tiles are
// computed in f32. On one core with AVX-512 BF16 direct kernels took 1.4 to 2.0 times as long as F(4x4) on the layers
// of ResNet-18; with AMX their peak is four times that of f32 and more.
int bf16_tile(const KernelRequest& r, int tile) {
  const bool is_bf16 = are(DType::BF16, r.inputs) && are(DType::F32, r.outputs);
  return is_bf16 && tile == 4 && native_pairs() != "tiles" ? tile : 0;
}

KernelOffer named_offer(const KernelRequest& r, int tile) {
  KernelOffer offer = plain_offer(r);
  offer.implementation = tile == 4 ? "winograd4" : "winograd2";
  return offer;
}

Layout blocked(const Type& t) { return Layout::channels_blocked(t.shape, kLanes); }

constexpr std::size_t kNormInputs = 4;

// The norm's inputs lie behind all others, from `first` on.
GivenNorm norm_of(const Arguments& a, std::size_t first, bool normalises) {
  if (!normalises) return {};
  return {.gamma = a.in<float>(first),
          .beta = a.in<float>(first + 1),
          .mean = a.in<float>(first + 2),
          .inv_std = a.in<float>(first + 3)};
}

std::optional<KernelOffer> forward(const KernelRequest& r, const ConvolutionOp& op, bool normalises) {
  const auto g = convolution_geometry(op.options(), r.inputs[0].shape, r.inputs[1].shape);
  const int tile = is_f32(r) ? winograd_tile(g, r.options) : 0;
  if (tile == 0) return std::nullopt;
  const std::size_t inputs = r.inputs.size() - (normalises ? kNormInputs : 0), last = inputs - 1;
  KernelOffer offer = named_offer(r, tile);
  offer.normalises = !normalises && op.options().axes.size() == 2;
  offer.inputs[0] = blocked(r.inputs[0]);
  offer.inputs[1] = winograd_weight_layout(r.inputs[1].shape);
  offer.outputs[0] = blocked(r.outputs[0]);
  const Epilogue epilogue = op.epilogue();
  if (epilogue.residual) {
    offer.in_place_input = static_cast<int>(last);
    offer.inputs[last] = offer.outputs[0];
  }
  offer.build = [g, tile, inputs, normalises, epilogue, bias = op.has_bias(inputs)] {
    auto kernel = std::make_shared<const WinogradConvolution>(g, WinogradConvolution::Direction::Forward, tile,
                                                              native_kernels(), normalises);
    const auto run = [=](const Arguments& a) {
      kernel->run({.x = a.in<float>(0),
                   .w = a.in<float>(1),
                   .norm = norm_of(a, inputs, normalises),
                   .bias = bias ? a.in<float>(2) : nullptr,
                   .addend = epilogue.residual ? a.in<float>(inputs - 1) : nullptr,
                   .relu = epilogue.relu,
                   .y = a.out<float>(0),
                   .workspace = a.scratch<float>()});
    };
    return make_kernel(run, kernel->workspace_bytes());
  };
  return offer;
}

std::optional<KernelOffer> backward_weights(const KernelRequest& r, const ConvolutionOptions& options,
                                            bool normalises) {
  const auto g = convolution_geometry(options, r.inputs[0].shape, r.outputs[0].shape);
  const bool f32 = is_f32(r);
  const int of_shape = winograd_tile(g, r.options), tile = f32 ? of_shape : bf16_tile(r, of_shape);
  if (tile == 0) return std::nullopt;
  KernelOffer offer = named_offer(r, tile);
  offer.normalises = f32 && !normalises && options.axes.size() == 2;
  offer.inputs[0] = blocked(r.inputs[0]);
  offer.inputs[1] = blocked(r.inputs[1]);
  offer.outputs[0] = winograd_weight_layout(r.outputs[0].shape);
  offer.build = [g, tile, f32, normalises, bias = r.outputs.size() > 1] {
    auto kernel = std::make_shared<const WinogradGradient>(g, tile, native_kernels(), normalises);
    const auto add_norm = [normalises](const Arguments& a, auto& arrays) { arrays.norm = norm_of(a, 2, normalises); };
    return f32 ? weight_gradient_kernel<WinogradGradient::Arrays>(std::move(kernel), bias, add_norm)
               : weight_gradient_kernel<WinogradGradient::ArraysOf<Bf16>>(std::move(kernel), bias, add_norm);
  };
  return offer;
}

}  // namespace

std::optional<KernelOffer> winograd_forward(const KernelRequest& r) { return forward(r, r.as<ConvolutionOp>(), false); }

std::optional<KernelOffer> winograd_forward_of_norm(const KernelRequest& r) {
  return forward(r, r.as<ConvolutionOfNormOp>().convolution(), true);
}

std::optional<KernelOffer> winograd_backward_data(const KernelRequest& r) {
  const auto g =
      convolution_geometry(r.as<ConvolutionBackwardDataOp>().options(), r.outputs[0].shape, r.inputs[1].shape);
  const int tile = is_f32(r) ? winograd_tile(g, r.options) : 0;
  if (tile == 0) return std::nullopt;
  KernelOffer offer = named_offer(r, tile);
  offer.inputs[0] = blocked(r.inputs[0]);
  offer.inputs[1] = winograd_weight_layout(r.inputs[1].shape);
  offer.outputs[0] = blocked(r.outputs[0]);
  offer.build = [g, tile] {
    auto kernel = std::make_shared<const WinogradConvolution>(g, WinogradConvolution::Direction::BackwardData, tile);
    const auto run = [=](const Arguments& a) {
      kernel->run({.x = a.in<float>(0), .w = a.in<float>(1), .y = a.out<float>(0), .workspace = a.scratch<float>()});
    };
    return make_kernel(run, kernel->workspace_bytes());
  };
  return offer;
}

std::optional<KernelOffer> winograd_backward_weights(const KernelRequest& r) {
  return backward_weights(r, r.as<ConvolutionBackwardWeightsOp>().options(), false);
}

std::optional<KernelOffer> winograd_backward_weights_of_norm(const KernelRequest& r) {
  return backward_weights(r, r.as<ConvolutionOfNormBackwardWeightsOp>().options(), true);
}

}  // namespace lockstep::kernels::native

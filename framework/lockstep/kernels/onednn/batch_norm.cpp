#include "lockstep/kernels/onednn/batch_norm.h"

#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "lockstep/kernels/onednn/library.h"
#include "lockstep/kernels/onednn/memory_layout.h"
#include "lockstep/kernels/onednn/primitive_kernel.h"
#include "lockstep/ops/batch_norm2d.h"

namespace lockstep::kernels::onednn {
namespace {

const auto kFlags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;

// The offered layout of the images, or plain. nullopt if channels do not fill their blocks, as oneDNN's gradient writes
// to the padding.
std::optional<dnnl::memory::desc> image(const Type& x, const Layout& offered) {
  if ((x.dtype != DType::F32 && x.dtype != DType::BF16) || x.shape.elements() == 0) return std::nullopt;
  if (offered.channel_block(x.shape) <= 1) return descriptor(x);
  if (offered.has_padding(x.shape)) return std::nullopt;
  return descriptor(x, offered);
}

}  // namespace

// oneDNN returns the biased variance, the op the inverse deviation; this converts in place.
std::optional<KernelOffer> batch_norm(const KernelRequest& r, std::span<const Layout> offered) {
  const auto& op = r.as<BatchNorm2dOp>();
  const Shape& shape = r.inputs[0].shape;
  const auto x = image(r.inputs[0], offered[0]);
  if (!x || op.epilogue() != Epilogue{}) return std::nullopt;
  const auto primitive = forward_normalization(*x, static_cast<float>(op.epsilon()), kFlags, attributes());
  if (!primitive) return std::nullopt;
  const auto per_channel = descriptor(r.inputs[1]);
  auto offer = primitive_offer(r, primitive,
                               {{DNNL_ARG_SRC, 0, false, *x},
                                {DNNL_ARG_SCALE, 1, false, per_channel},
                                {DNNL_ARG_SHIFT, 2, false, per_channel},
                                {DNNL_ARG_DST, 0, true, *x},
                                {DNNL_ARG_MEAN, 1, true, per_channel},
                                {DNNL_ARG_VARIANCE, 2, true, per_channel}});
  if (!offer) return std::nullopt;
  const std::int64_t channels = shape[1];
  const std::int64_t per_channel_values = shape.elements() / channels;
  const auto count = static_cast<double>(per_channel_values);
  offer->build = [build = std::move(offer->build), channels, count, epsilon = op.epsilon()] {
    auto normalise = build();
    const std::size_t workspace = normalise->workspace_bytes();
    return make_kernel(
        [=, normalise = std::move(normalise)](const Arguments& a) {
          normalise->run(a);
          const float* const mean = a.out<float>(1);
          float* const spread = a.out<float>(2);
          double* const sums = a.out<double>(3);
          for (std::int64_t c = 0; c < channels; ++c) {
            const double m = static_cast<double>(mean[c]), variance = static_cast<double>(spread[c]);
            sums[c] = count * m;
            sums[channels + c] = count * (variance + m * m);
            spread[c] = static_cast<float>(1 / std::sqrt(variance + epsilon));
          }
        },
        workspace);
  };
  return offer;
}

// oneDNN reads a variance and an epsilon; 1 / (inverse deviation)^2 and 0 are equivalent.
std::optional<KernelOffer> batch_norm_gradient(const KernelRequest& r, std::span<const Layout> offered) {
  const auto x = image(r.inputs[0], offered[0]);
  if (!x || r.as<BatchNorm2dGradientOp>().epilogue() != Epilogue{}) return std::nullopt;
  const auto hint = forward_normalization(*x, 0.0f, kFlags, attributes());
  if (!hint) return std::nullopt;
  const auto primitive = normalization_gradient(*x, 0.0f, kFlags, attributes(), hint);
  if (!primitive) return std::nullopt;
  const auto per_channel = descriptor(r.inputs[2]);
  std::vector<Binding> bindings{{DNNL_ARG_SRC, 0, false, *x},
                                {DNNL_ARG_DIFF_DST, 1, false, *x},
                                {DNNL_ARG_SCALE, 2, false, per_channel},
                                {DNNL_ARG_MEAN, 3, false, per_channel},
                                {DNNL_ARG_VARIANCE, 4, false, per_channel},
                                {DNNL_ARG_DIFF_SRC, 0, true, *x},
                                {DNNL_ARG_DIFF_SCALE, 1, true, per_channel},
                                {DNNL_ARG_DIFF_SHIFT, 2, true, per_channel}};
  if (kNormalizationGradientTakesShift) bindings.push_back({DNNL_ARG_SHIFT, 2, false, per_channel});
  auto offer = primitive_offer(r, primitive, std::move(bindings));
  if (!offer) return std::nullopt;
  offer->build = [build = std::move(offer->build), channels = r.inputs[0].shape[1]] {
    auto differentiate = build();
    const std::size_t workspace = (differentiate->workspace_bytes() + 63) / 64 * 64;
    return make_kernel(
        [=, differentiate = std::move(differentiate)](const Arguments& a) {
          auto* const variance = reinterpret_cast<float*>(a.scratch<std::byte>() + workspace);
          for (std::int64_t c = 0; c < channels; ++c) variance[c] = 1 / (a.in<float>(4)[c] * a.in<float>(4)[c]);
          const std::array<const void*, 5> inputs{a.inputs[0], a.inputs[1], a.inputs[2], a.inputs[3], variance};
          differentiate->run({inputs.data(), a.outputs, a.workspace});
        },
        workspace + static_cast<std::size_t>(channels) * sizeof(float));
  };
  return offer;
}

}  // namespace lockstep::kernels::onednn

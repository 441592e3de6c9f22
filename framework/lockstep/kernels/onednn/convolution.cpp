#include "lockstep/kernels/onednn/convolution.h"

#include <algorithm>

#include "lockstep/kernels/onednn/convolution_algorithms.h"
#include "lockstep/kernels/onednn/library.h"
#include "lockstep/kernels/onednn/memory_layout.h"
#include "lockstep/kernels/onednn/primitive_kernel.h"
#include "lockstep/ops/convolution.h"

namespace lockstep::kernels::onednn {
namespace {

// Lets oneDNN choose all layouts: with blocked activations and plain weights it would run its reference implementation.
// Weights have the type of the activations; their gradient and biases are f32.
struct Problem {
  ProductMemory memory;
  dnnl::memory::desc dweight;
  ConvolutionWindow window = {};

  dnnl::convolution_forward::primitive_desc forward(dnnl::algorithm algorithm, const Epilogue& epilogue = {}) const {
    return forward_convolution(algorithm, memory, window, attributes(epilogue));
  }
  ProductMemory gradient_memory() const { return {memory.x, dweight, memory.bias, memory.y}; }
};

Problem describe(const ConvolutionShape& s, DType dtype, bool bias) {
  const ConvolutionOptions& o = s.options;
  Shape filters = s.weight;
  if (o.groups > 1) {  // (groups, out / groups, in / groups, ...)
    filters[0] /= o.groups;
    filters = filters.batched(o.groups);
  }
  Problem p{.memory = {.x = any_layout(s.x, dtype),
                       .weight = any_layout(filters, dtype),
                       .bias = bias ? descriptor({Shape{s.weight[0]}}) : dnnl::memory::desc(),
                       .y = any_layout(s.y, dtype)},
            .dweight = any_layout(filters, DType::F32)};
  for (const ConvolutionAxis& a : o.axes) {
    p.window.stride.push_back(a.stride);
    p.window.dilation.push_back(a.dilation - 1);
    p.window.padding.push_back(a.padding);
  }
  return p;
}

bool supported(const KernelRequest& r) {
  const auto fits = [](const Type& t) {
    return (t.dtype == DType::F32 || t.dtype == DType::BF16) && t.shape.elements() > 0;
  };
  return std::ranges::all_of(r.inputs, fits) && std::ranges::all_of(r.outputs, fits);
}

// Descriptors of some algorithms throw where these do not apply.
template <class Offer>
std::optional<KernelOffer> if_implemented(Offer offer) {
  try {
    return offer();
  } catch (const dnnl::error& e) {
    if (e.status != dnnl_unimplemented) throw;
    return std::nullopt;
  }
}

// One offer per algorithm that oneDNN has for the shape, in the order of the rule.
template <class Offer>
std::vector<KernelOffer> offers(const KernelRequest& r, const ConvolutionShape& shape, Direction direction,
                                Offer offer) {
  std::vector<KernelOffer> result;
  const DType dtype = r.inputs[0].dtype;
  for (const dnnl::algorithm algorithm : algorithms(shape, direction, dtype, r.options.conv_math)) {
    if (auto made = if_implemented([&] { return offer(algorithm); })) result.push_back(std::move(*made));
  }
  return result;
}

// oneDNN's depth-wise kernels for AArch64 with SVE compute wrong gradients of weights for strides and padding (its
// issue 4124, mended after version 3.9; 2.6 has the same fault).
bool has_wrong_gradient(const ConvolutionShape& s) {
#if defined(__aarch64__)
  return s.options.groups > 1 && s.weight[1] == 1;
#else
  static_cast<void>(s);
  return false;
#endif
}

}  // namespace

std::vector<KernelOffer> convolution_forward(const KernelRequest& r, std::span<const Layout>) {
  if (!supported(r)) return {};
  const auto& op = r.as<ConvolutionOp>();
  const bool bias = op.has_bias(r.inputs.size());
  const ConvolutionShape shape{op.options(), r.inputs[0].shape, r.inputs[1].shape, r.outputs[0].shape};
  const Problem p = describe(shape, r.dtype(), bias);
  return offers(r, shape, Direction::Forward, [&](dnnl::algorithm algorithm) -> std::optional<KernelOffer> {
    const auto primitive = p.forward(algorithm, op.epilogue());
    if (!primitive) return std::nullopt;
    std::vector<Binding> bindings{{DNNL_ARG_SRC, 0, false, primitive.src_desc()},
                                  {DNNL_ARG_WEIGHTS, 1, false, primitive.weights_desc()},
                                  {DNNL_ARG_DST, 0, true, primitive.dst_desc()}};
    if (bias) bindings.push_back({DNNL_ARG_BIAS, 2, false, primitive.bias_desc()});
    return primitive_offer(r, primitive, std::move(bindings), op.epilogue());
  });
}

namespace {

std::optional<KernelOffer> data_gradient_offer(const KernelRequest& r, const Problem& p, dnnl::algorithm algorithm) {
  const auto hint = p.forward(algorithm);
  if (!hint) return std::nullopt;
  const auto primitive = data_gradient(algorithm, p.memory, p.window, attributes(), hint);
  if (!primitive) return std::nullopt;
  return primitive_offer(r, primitive,
                         {{DNNL_ARG_DIFF_DST, 0, false, primitive.diff_dst_desc()},
                          {DNNL_ARG_WEIGHTS, 1, false, primitive.weights_desc()},
                          {DNNL_ARG_DIFF_SRC, 0, true, primitive.diff_src_desc()}});
}

// The problem with images in the blocks of channels in which the gradient comes; nullopt where it comes otherwise.
std::optional<Problem> in_blocks(const KernelRequest& r, Problem p, const Layout& offered) {
  const std::int64_t block = offered.channel_block(r.inputs[0].shape);
  const Type& x = r.outputs[0];
  if (block <= 1 || x.shape[1] % block != 0) return std::nullopt;
  p.memory.y = descriptor(r.inputs[0], offered);
  p.memory.x = descriptor(x, Layout::channels_blocked(x.shape, block));
  return p;
}

}  // namespace

// For strides oneDNN 3.x prefers images with channels last, also where all neighbours have them in blocks: two passes
// over the images for each. So its kernel for blocks comes first there; 2.6 chooses that by itself.
std::vector<KernelOffer> convolution_backward_data(const KernelRequest& r, std::span<const Layout> offered) {
  if (!supported(r)) return {};
  const ConvolutionShape shape{r.as<ConvolutionBackwardDataOp>().options(), r.outputs[0].shape, r.inputs[1].shape,
                               r.inputs[0].shape};
  const Problem p = describe(shape, r.dtype(), false);
  return offers(r, shape, Direction::BackwardData, [&](dnnl::algorithm algorithm) -> std::optional<KernelOffer> {
    auto free = data_gradient_offer(r, p, algorithm);
    if (!free || free->inputs[0] == offered[0]) return free;
    const auto blocked = in_blocks(r, p, offered[0]);
    if (!blocked) return free;
    auto kept = if_implemented([&] { return data_gradient_offer(r, *blocked, algorithm); });
    return kept ? std::move(kept) : std::move(free);
  });
}

std::vector<KernelOffer> convolution_backward_weights(const KernelRequest& r, std::span<const Layout>) {
  if (!supported(r)) return {};
  const bool bias = r.outputs.size() > 1;
  const ConvolutionShape shape{r.as<ConvolutionBackwardWeightsOp>().options(), r.inputs[0].shape, r.outputs[0].shape,
                               r.inputs[1].shape};
  if (has_wrong_gradient(shape)) return {};
  const Problem p = describe(shape, r.inputs[0].dtype, bias);
  return offers(r, shape, Direction::BackwardWeights, [&](dnnl::algorithm algorithm) -> std::optional<KernelOffer> {
    const auto hint = p.forward(algorithm);
    if (!hint) return std::nullopt;
    const auto primitive = weight_gradient(algorithm, p.gradient_memory(), p.window, attributes(), hint);
    if (!primitive) return std::nullopt;
    std::vector<Binding> bindings{{DNNL_ARG_SRC, 0, false, primitive.src_desc()},
                                  {DNNL_ARG_DIFF_DST, 1, false, primitive.diff_dst_desc()},
                                  {DNNL_ARG_DIFF_WEIGHTS, 0, true, primitive.diff_weights_desc()}};
    if (bias) bindings.push_back({DNNL_ARG_DIFF_BIAS, 1, true, primitive.diff_bias_desc()});
    return primitive_offer(r, primitive, std::move(bindings));
  });
}

}  // namespace lockstep::kernels::onednn

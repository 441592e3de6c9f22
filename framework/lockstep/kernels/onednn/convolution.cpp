// Descriptors in oneDNN's v2 form; a port to v3 changes `describe` and the three primitive descriptors.
#include "lockstep/kernels/onednn/convolution.h"

#include <algorithm>

#include "lockstep/kernels/onednn/memory_layout.h"
#include "lockstep/kernels/onednn/primitive_kernel.h"
#include "lockstep/ops/conv2d.h"

namespace lockstep::onednn {
namespace {

constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;

// Never a fixed layout where oneDNN may choose: beside blocked activations, plain weights run on the reference
// implementation.
struct Problem {
  dnnl::memory::desc x, weight, bias, y;
  dnnl::memory::dims stride, dilation, padding;
};

Problem describe(const Conv2dOptions& o, const Shape& x, const Shape& weight, const Shape& y, bool bias = false) {
  Shape filters = weight;
  if (o.groups > 1) filters = Shape{o.groups, weight[0] / o.groups, weight[1], weight[2], weight[3]};
  return {.x = any_layout(x),
          .weight = any_layout(filters),
          .bias = bias ? descriptor(Shape{weight[0]}, {}) : dnnl::memory::desc(),
          .y = any_layout(y),
          .stride = {o.stride_h, o.stride_w},
          .dilation = {o.dilation_h - 1, o.dilation_w - 1},
          .padding = {o.padding_h, o.padding_w}};
}

// Also the hint that oneDNN's gradients of a convolution ask for.
dnnl::convolution_forward::primitive_desc forward_primitive(const Problem& p) {
  const dnnl::convolution_forward::desc d(dnnl::prop_kind::forward_training, kAlgorithm, p.x, p.weight, p.bias, p.y,
                                          p.stride, p.dilation, p.padding, p.padding);
  return {d, attributes(), engine(), true};
}

bool supported(const KernelRequest& r) {
  const auto fits = [](const Type& t) { return t.dtype == DType::F32 && t.shape.elements() > 0; };
  return std::ranges::all_of(r.inputs, fits) && std::ranges::all_of(r.outputs, fits);
}

std::optional<KernelOffer> forward(const KernelRequest& r, const Problem& p) {
  const auto primitive = forward_primitive(p);
  if (!primitive) return std::nullopt;
  std::vector<Binding> bindings{{DNNL_ARG_SRC, 0, false, primitive.src_desc()},
                                {DNNL_ARG_WEIGHTS, 1, false, primitive.weights_desc()},
                                {DNNL_ARG_DST, 0, true, primitive.dst_desc()}};
  if (r.inputs.size() > 2) bindings.push_back({DNNL_ARG_BIAS, 2, false, primitive.bias_desc()});
  return primitive_offer(r, primitive, std::move(bindings));
}

std::optional<KernelOffer> backward_data(const KernelRequest& r, const Problem& p) {
  const auto hint = forward_primitive(p);
  if (!hint) return std::nullopt;
  const dnnl::convolution_backward_data::desc d(kAlgorithm, p.x, p.weight, p.y, p.stride, p.dilation, p.padding,
                                                p.padding);
  const dnnl::convolution_backward_data::primitive_desc primitive(d, attributes(), engine(), hint, true);
  if (!primitive) return std::nullopt;
  return primitive_offer(r, primitive,
                         {{DNNL_ARG_DIFF_DST, 0, false, primitive.diff_dst_desc()},
                          {DNNL_ARG_WEIGHTS, 1, false, primitive.weights_desc()},
                          {DNNL_ARG_DIFF_SRC, 0, true, primitive.diff_src_desc()}});
}

std::optional<KernelOffer> backward_weights(const KernelRequest& r, const Problem& p) {
  const auto hint = forward_primitive(p);
  if (!hint) return std::nullopt;
  const dnnl::convolution_backward_weights::desc d(kAlgorithm, p.x, p.weight, p.y, p.stride, p.dilation, p.padding,
                                                   p.padding);
  const dnnl::convolution_backward_weights::primitive_desc primitive(d, attributes(), engine(), hint, true);
  if (!primitive) return std::nullopt;
  return primitive_offer(r, primitive,
                         {{DNNL_ARG_SRC, 0, false, primitive.src_desc()},
                          {DNNL_ARG_DIFF_DST, 1, false, primitive.diff_dst_desc()},
                          {DNNL_ARG_DIFF_WEIGHTS, 0, true, primitive.diff_weights_desc()}});
}

bool is_generated(const std::optional<KernelOffer>& offer) { return offer && offer->implementation.starts_with("jit"); }

// An activation that an offer reads: where the node has it, and where the problem describes it.
struct Activation {
  std::size_t input;
  dnnl::memory::desc Problem::*descriptor;
};

// oneDNN's choice, unless activations come blocked by channels otherwise and it has a generated kernel for them as they
// lie: with less than 16 channels its directions disagree, and each reorder costs more than the better kernel gains.
std::optional<KernelOffer> offer(std::optional<KernelOffer> (*direction)(const KernelRequest&, const Problem&),
                                 const KernelRequest& r, std::span<const Layout> offered, Problem p,
                                 std::initializer_list<Activation> activations) {
  auto chosen = direction(r, p);
  if (!is_generated(chosen)) return chosen;
  bool differs = false;
  for (const auto& [input, member] : activations) {
    const Shape& shape = r.inputs[input].shape;
    const std::int64_t block = offered[input].channel_block(shape);
    if (block != 8 && block != 16) continue;
    differs = differs || offered[input] != chosen->inputs[input];
    p.*member = descriptor(shape, offered[input]);
  }
  if (!differs) return chosen;
  auto kept = direction(r, p);
  return is_generated(kept) ? kept : chosen;
}

}  // namespace

std::optional<KernelOffer> conv2d_forward(const KernelRequest& r, std::span<const Layout> offered) {
  if (!supported(r)) return std::nullopt;
  const Problem p = describe(r.as<Conv2dOp>().options(), r.inputs[0].shape, r.inputs[1].shape, r.outputs[0].shape,
                             r.inputs.size() > 2);
  return offer(forward, r, offered, p, {{0, &Problem::x}});
}

std::optional<KernelOffer> conv2d_backward_data(const KernelRequest& r, std::span<const Layout> offered) {
  if (!supported(r)) return std::nullopt;
  const Problem p =
      describe(r.as<Conv2dBackwardDataOp>().options(), r.outputs[0].shape, r.inputs[1].shape, r.inputs[0].shape);
  return offer(backward_data, r, offered, p, {{0, &Problem::y}});
}

std::optional<KernelOffer> conv2d_backward_weights(const KernelRequest& r, std::span<const Layout> offered) {
  if (!supported(r)) return std::nullopt;
  const Problem p =
      describe(r.as<Conv2dBackwardWeightsOp>().options(), r.inputs[0].shape, r.outputs[0].shape, r.inputs[1].shape);
  return offer(backward_weights, r, offered, p, {{0, &Problem::x}, {1, &Problem::y}});
}

}  // namespace lockstep::onednn

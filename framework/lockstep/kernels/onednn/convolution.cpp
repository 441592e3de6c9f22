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

}  // namespace

std::optional<KernelOffer> conv2d_forward(const KernelRequest& r, std::span<const Layout>) {
  if (!supported(r) || r.as<Conv2dOp>().epilogue() != Epilogue{}) return std::nullopt;
  const bool bias = r.inputs.size() > 2;
  const Problem p =
      describe(r.as<Conv2dOp>().options(), r.inputs[0].shape, r.inputs[1].shape, r.outputs[0].shape, bias);
  const auto primitive = forward_primitive(p);
  if (!primitive) return std::nullopt;
  std::vector<Binding> bindings{{DNNL_ARG_SRC, 0, false, primitive.src_desc()},
                                {DNNL_ARG_WEIGHTS, 1, false, primitive.weights_desc()},
                                {DNNL_ARG_DST, 0, true, primitive.dst_desc()}};
  if (bias) bindings.push_back({DNNL_ARG_BIAS, 2, false, primitive.bias_desc()});
  return primitive_offer(r, primitive, std::move(bindings));
}

std::optional<KernelOffer> conv2d_backward_data(const KernelRequest& r, std::span<const Layout>) {
  if (!supported(r)) return std::nullopt;
  const Problem p =
      describe(r.as<Conv2dBackwardDataOp>().options(), r.outputs[0].shape, r.inputs[1].shape, r.inputs[0].shape);
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

std::optional<KernelOffer> conv2d_backward_weights(const KernelRequest& r, std::span<const Layout>) {
  if (!supported(r)) return std::nullopt;
  const bool bias = r.outputs.size() > 1;
  const Problem p = describe(r.as<Conv2dBackwardWeightsOp>().options(), r.inputs[0].shape, r.outputs[0].shape,
                             r.inputs[1].shape, bias);
  const auto hint = forward_primitive(p);
  if (!hint) return std::nullopt;
  const dnnl::convolution_backward_weights::desc d(kAlgorithm, p.x, p.weight, p.bias, p.y, p.stride, p.dilation,
                                                   p.padding, p.padding);
  const dnnl::convolution_backward_weights::primitive_desc primitive(d, attributes(), engine(), hint, true);
  if (!primitive) return std::nullopt;
  std::vector<Binding> bindings{{DNNL_ARG_SRC, 0, false, primitive.src_desc()},
                                {DNNL_ARG_DIFF_DST, 1, false, primitive.diff_dst_desc()},
                                {DNNL_ARG_DIFF_WEIGHTS, 0, true, primitive.diff_weights_desc()}};
  if (bias) bindings.push_back({DNNL_ARG_DIFF_BIAS, 1, true, primitive.diff_bias_desc()});
  return primitive_offer(r, primitive, std::move(bindings));
}

}  // namespace lockstep::onednn

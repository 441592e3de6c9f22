#include "lockstep/kernels/onednn/pooling.h"

#include <algorithm>

#include "lockstep/kernels/onednn/library.h"
#include "lockstep/kernels/onednn/memory_layout.h"
#include "lockstep/kernels/onednn/primitive_kernel.h"
#include "lockstep/ops/pool.h"

namespace lockstep::kernels::onednn {
namespace {

// The number of elements by which the last window exceeds the image.
std::int64_t overhang(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride,
                      std::int64_t padding) {
  return std::max<std::int64_t>((out - 1) * stride + kernel - in - padding, 0);
}

dnnl::algorithm algorithm(Pool kind, bool count_include_pad) {
  if (kind == Pool::Max) return dnnl::algorithm::pooling_max;
  return count_include_pad ? dnnl::algorithm::pooling_avg_include_padding
                           : dnnl::algorithm::pooling_avg_exclude_padding;
}

// nullopt where oneDNN computes something else: with dilation; and for averages over windows that exceed the padding,
// of which PyTorch counts only the part inside.
std::optional<PoolingProblem> describe(Pool kind, const PoolOptions& o, const Type& x, const Type& y,
                                       const Layout& layout) {
  if ((x.dtype != DType::F32 && x.dtype != DType::BF16) || x.shape.elements() == 0) return std::nullopt;
  const std::int64_t block = layout.plain() ? 1 : layout.blocks.back().size;
  PoolingProblem p{.algorithm = algorithm(kind, o.count_include_pad),
                   .x = descriptor(x, Layout::channels_blocked(x.shape, block)),
                   .y = descriptor(y, Layout::channels_blocked(y.shape, block))};
  for (std::size_t i = 0; i < o.axes.size(); ++i) {
    const PoolAxis& a = o.axes[i];
    const int axis = static_cast<int>(i) + 2;
    const std::int64_t after = overhang(x.shape[axis], y.shape[axis], a.kernel, a.stride, a.padding);
    if (a.dilation != 1) return std::nullopt;
    if (kind == Pool::Average && o.count_include_pad && after > a.padding) return std::nullopt;
    p.stride.push_back(a.stride);
    p.kernel.push_back(a.kernel);
    p.before.push_back(a.padding);
    p.after.push_back(after);
  }
  return p;
}

// Where windows overlap, oneDNN adds up bf16 gradients in bf16.
bool adds_in_bf16(const PoolOptions& o, const Type& dx) {
  return dx.dtype == DType::BF16 && std::ranges::any_of(o.axes, [](const PoolAxis& a) { return a.stride < a.kernel; });
}

// The layout for the gradient of `x`: that of dy. For dy with images of one pixel, where blocked and plain are the same
// memory, blocks, because an input that is pooled to one pixel usually comes from a convolution.
Layout gradient_layout(const Type& dy, const Layout& offered) {
  const Shape& s = dy.shape;
  if (offered.channel_block(s) > 1) return offered;
  if (s.tail().tail().elements() != 1 || s[1] < 8) return {};
  constexpr int kWide = dnnl_cpu_isa_avx512_core;  // a set of bits, as every instruction set here
  const bool wide = (static_cast<int>(dnnl_get_effective_cpu_isa()) & kWide) == kWide;
  return Layout::channels_blocked(s, wide ? 16 : 8);
}

}  // namespace

std::optional<KernelOffer> average_pool(const KernelRequest& r, std::span<const Layout> offered) {
  const Layout layout = offered[0].channel_block(r.inputs[0].shape) > 1 ? offered[0] : Layout{};
  const auto p = describe(Pool::Average, r.as<PoolOp>().options(), r.inputs[0], r.outputs[0], layout);
  if (!p) return std::nullopt;
  const auto primitive = forward_pooling(*p, attributes());
  if (!primitive) return std::nullopt;
  return primitive_offer(r, primitive, {{DNNL_ARG_SRC, 0, false, p->x}, {DNNL_ARG_DST, 0, true, p->y}});
}

std::optional<KernelOffer> average_pool_gradient(const KernelRequest& r, std::span<const Layout> offered) {
  const PoolOptions& o = r.as<PoolGradientOp>().options();
  if (adds_in_bf16(o, r.outputs[0])) return std::nullopt;
  const Layout layout = gradient_layout(r.inputs[0], offered[0]);
  const auto p = describe(Pool::Average, o, r.outputs[0], r.inputs[0], layout);
  if (!p) return std::nullopt;
  const auto hint = forward_pooling(*p, attributes());
  if (!hint) return std::nullopt;
  const auto primitive = pooling_gradient(*p, attributes(), hint);
  if (!primitive) return std::nullopt;
  return primitive_offer(r, primitive, {{DNNL_ARG_DIFF_DST, 0, false, p->y}, {DNNL_ARG_DIFF_SRC, 0, true, p->x}});
}

std::optional<KernelOffer> max_pool_gradient(const KernelRequest& r, std::span<const Layout> offered) {
  const PoolOptions& o = r.as<PoolGradientOp>().options();
  if (adds_in_bf16(o, r.outputs[0])) return std::nullopt;
  const Layout layout = offered[1].channel_block(r.inputs[1].shape) > 1 ? offered[1] : Layout{};
  const auto p = describe(Pool::Max, o, r.outputs[0], r.inputs[0], layout);
  if (!p) return std::nullopt;
  const auto hint = forward_pooling(*p, attributes());
  if (!hint) return std::nullopt;
  const auto primitive = pooling_gradient(*p, attributes(), hint);
  if (!primitive || data_type_of(primitive.workspace_desc()) != data_type(r.inputs[1].dtype)) return std::nullopt;
  return primitive_offer(r, primitive,
                         {{DNNL_ARG_DIFF_DST, 0, false, p->y},
                          {DNNL_ARG_WORKSPACE, 1, false, primitive.workspace_desc()},
                          {DNNL_ARG_DIFF_SRC, 0, true, p->x}});
}

}  // namespace lockstep::kernels::onednn

#include "lockstep/kernels/onednn/elementwise.h"

#include <algorithm>

#include "lockstep/kernels/onednn/memory_layout.h"
#include "lockstep/kernels/onednn/primitive_kernel.h"
#include "lockstep/ops/elementwise.h"

namespace lockstep::onednn {
namespace {

bool supported(const KernelRequest& r) {
  const Type& t = r.outputs[0];
  return (t.dtype == DType::F32 || t.dtype == DType::BF16) && t.shape.elements() > 0 && t.shape.rank() > 0 &&
         t.shape.rank() <= 6;
}

// The first offered layout that is not plain, for all values of the node: they have one shape.
const Layout& common_layout(std::span<const Layout> offered) {
  const auto blocked = std::ranges::find_if(offered, [](const Layout& l) { return !l.plain(); });
  return blocked == offered.end() ? offered[0] : *blocked;
}

// Several Layouts can be the same memory: the node's values all get the one that was offered.
std::optional<KernelOffer> in_layout(std::optional<KernelOffer> offer, const Layout& layout, int in_place_input) {
  if (!offer) return offer;
  std::ranges::fill(offer->inputs, layout);
  std::ranges::fill(offer->outputs, layout);
  offer->in_place_input = in_place_input;
  return offer;
}

std::optional<dnnl::algorithm> forward_algorithm(Unary kind) {
  switch (kind) {
    case Unary::Tanh:
      return dnnl::algorithm::eltwise_tanh;
    case Unary::Sigmoid:
      return dnnl::algorithm::eltwise_logistic;
    case Unary::Sqrt:
      return dnnl::algorithm::eltwise_sqrt;
    case Unary::Square:
      return dnnl::algorithm::eltwise_square;
    case Unary::Abs:
      return dnnl::algorithm::eltwise_abs;
    case Unary::Relu:
    case Unary::Exp:
    case Unary::Log:
      break;
  }
  return std::nullopt;
}

// In terms of what UnaryGradientOp saves.
std::optional<dnnl::algorithm> backward_algorithm(Unary kind) {
  switch (kind) {
    case Unary::Tanh:
      return dnnl::algorithm::eltwise_tanh_use_dst_for_bwd;
    case Unary::Sigmoid:
      return dnnl::algorithm::eltwise_logistic_use_dst_for_bwd;
    case Unary::Sqrt:
      return dnnl::algorithm::eltwise_sqrt_use_dst_for_bwd;
    case Unary::Square:
      return dnnl::algorithm::eltwise_square;
    case Unary::Relu:
    case Unary::Exp:
    case Unary::Log:
    case Unary::Abs:  // 1 at NaN, where others say 0
      break;
  }
  return std::nullopt;
}

}  // namespace

std::optional<KernelOffer> unary(const KernelRequest& r, std::span<const Layout> offered) {
  const auto algorithm = forward_algorithm(r.as<UnaryOp>().kind());
  if (!algorithm || !supported(r)) return std::nullopt;
  const auto x = descriptor(r.inputs[0], offered[0]);
  const dnnl::eltwise_forward::desc d(dnnl::prop_kind::forward_training, *algorithm, x, 0, 0);
  const dnnl::eltwise_forward::primitive_desc primitive(d, attributes(), engine(), true);
  if (!primitive) return std::nullopt;
  return in_layout(primitive_offer(r, primitive, {{DNNL_ARG_SRC, 0, false, x}, {DNNL_ARG_DST, 0, true, x}}), offered[0],
                   0);
}

std::optional<KernelOffer> unary_gradient(const KernelRequest& r, std::span<const Layout> offered) {
  const Unary kind = r.as<UnaryGradientOp>().kind();
  const auto algorithm = backward_algorithm(kind);
  if (!algorithm || !supported(r)) return std::nullopt;
  const Layout& layout = common_layout(offered);
  const auto x = descriptor(r.outputs[0], layout);
  const dnnl::eltwise_forward::desc forward(dnnl::prop_kind::forward_training, *algorithm, x, 0, 0);
  const dnnl::eltwise_forward::primitive_desc hint(forward, attributes(), engine(), true);
  if (!hint) return std::nullopt;
  const dnnl::eltwise_backward::desc d(*algorithm, x, x, 0, 0);
  const dnnl::eltwise_backward::primitive_desc primitive(d, attributes(), engine(), hint, true);
  if (!primitive) return std::nullopt;
  const int saved = UnaryGradientOp::saves_output(kind) ? DNNL_ARG_DST : DNNL_ARG_SRC;
  return in_layout(
      primitive_offer(r, primitive,
                      {{saved, 0, false, x}, {DNNL_ARG_DIFF_DST, 1, false, x}, {DNNL_ARG_DIFF_SRC, 0, true, x}}),
      layout, 1);
}

std::optional<KernelOffer> binary(const KernelRequest& r, std::span<const Layout> offered) {
  if (!supported(r)) return std::nullopt;
  const Binary kind = r.as<BinaryOp>().kind();
  const auto algorithm = kind == Binary::Add        ? dnnl::algorithm::binary_add
                         : kind == Binary::Subtract ? dnnl::algorithm::binary_sub
                                                    : dnnl::algorithm::binary_mul;
  const Layout& layout = common_layout(offered);
  const auto x = descriptor(r.outputs[0], layout);
  const dnnl::binary::primitive_desc primitive(dnnl::binary::desc(algorithm, x, x, x), attributes(), engine(), true);
  if (!primitive) return std::nullopt;
  return in_layout(
      primitive_offer(r, primitive,
                      {{DNNL_ARG_SRC_0, 0, false, x}, {DNNL_ARG_SRC_1, 1, false, x}, {DNNL_ARG_DST, 0, true, x}}),
      layout, 0);
}

}  // namespace lockstep::onednn

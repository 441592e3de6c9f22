// GFLOP/s on one Zen 4 core for (samples, out, in), OpenBLAS 0.3.21 | this with the weights' layout left to oneDNN
// (brgemm, ab16b64a or ab16b16a) | this with plain weights; forward, backward data, backward weights with bias:
//   128, 1024, 1024   41 105  91 | 215 176 214 | 154 177 211
//   128, 256, 1024   107 111 113 | 242 213 219 | 181 206 224
//   128, 10, 1024     66  97  53 | 127  88  78 | 103 101 138
//   16, 120, 400      77  94 104 | 220 162 158 | 138 224 203
//   16, 84, 120       71  95 100 | 170 138 115 |  67 161 144
//   16, 10, 84        46  71  61 |  62  50  38 |  25  41  33
//   8, 1000, 2048     50  55  74 | 190  57 181 |  99 203 110
// So oneDNN comes first at every size (OpenBLAS would still need passes for the bias), with a layout of its choice
// first: in f32 all three directions choose the same one, which spares a derived copy of the weights. With many samples
// the plain one is faster in both backward directions, and as fast forward (native/matrix_product_rule.cpp).
#include "lockstep/kernels/onednn/inner_product.h"

#include <algorithm>

#include "lockstep/kernels/onednn/library.h"
#include "lockstep/kernels/onednn/memory_layout.h"
#include "lockstep/kernels/onednn/primitive_kernel.h"
#include "lockstep/ops/linear.h"

namespace lockstep::kernels::onednn {
namespace {

bool has_product(const KernelRequest& r) {
  const auto fits = [](const Type& t) {
    return (t.dtype == DType::F32 || t.dtype == DType::BF16) && t.shape.elements() > 0;
  };
  return std::ranges::all_of(r.inputs, fits) && std::ranges::all_of(r.outputs, fits);
}

enum class Weights : std::uint8_t { Any, Plain };

ProductMemory describe(const Type& x, const Type& weight, const Type& y, bool bias, Weights layout) {
  return {.x = descriptor(x),
          .weight = layout == Weights::Any ? any_layout(weight.shape, weight.dtype) : descriptor(weight),
          .bias = bias ? descriptor({Shape{weight.shape[0]}}) : dnnl::memory::desc(),
          .y = descriptor(y)};
}

// Collects offer(layout) for both layouts of the weights. In f32 the plain one comes first with many samples.
template <class Offer>
std::vector<KernelOffer> offers(const KernelRequest& r, Offer offer) {
  constexpr std::int64_t kManySamples = 256;
  std::vector<Weights> layouts{Weights::Any, Weights::Plain};
  if (!r.has_bf16() && r.inputs[0].shape[0] >= kManySamples) std::ranges::reverse(layouts);
  std::vector<KernelOffer> result;
  for (const Weights layout : layouts) {
    auto made = offer(layout);
    if (!made) continue;
    const auto same = [&](const KernelOffer& o) { return o.inputs == made->inputs && o.outputs == made->outputs; };
    if (std::ranges::none_of(result, same)) result.push_back(std::move(*made));
  }
  return result;
}

}  // namespace

std::vector<KernelOffer> linear_forward(const KernelRequest& r, std::span<const Layout>) {
  if (!has_product(r)) return {};
  const bool bias = r.inputs.size() > 2;
  const Type weight{r.inputs[1].shape, r.inputs[0].dtype};
  return offers(r, [&](Weights layout) -> std::optional<KernelOffer> {
    const auto primitive = forward_product(describe(r.inputs[0], weight, r.outputs[0], bias, layout), attributes());
    if (!primitive) return std::nullopt;
    std::vector<Binding> bindings{{DNNL_ARG_SRC, 0, false, primitive.src_desc()},
                                  {DNNL_ARG_WEIGHTS, 1, false, primitive.weights_desc()},
                                  {DNNL_ARG_DST, 0, true, primitive.dst_desc()}};
    if (bias) bindings.push_back({DNNL_ARG_BIAS, 2, false, primitive.bias_desc()});
    return primitive_offer(r, primitive, std::move(bindings), {.relu = r.as<LinearOp>().relu()});
  });
}

std::vector<KernelOffer> linear_backward_data(const KernelRequest& r, std::span<const Layout>) {
  if (!has_product(r)) return {};
  return offers(r, [&](Weights layout) -> std::optional<KernelOffer> {
    const Type weight{r.inputs[1].shape, r.outputs[0].dtype};
    const ProductMemory m = describe(r.outputs[0], weight, r.inputs[0], false, layout);
    const auto hint = forward_product(m, attributes());
    if (!hint) return std::nullopt;
    const auto primitive = data_gradient(m, attributes(), hint);
    if (!primitive) return std::nullopt;
    return primitive_offer(r, primitive,
                           {{DNNL_ARG_DIFF_DST, 0, false, primitive.diff_dst_desc()},
                            {DNNL_ARG_WEIGHTS, 1, false, primitive.weights_desc()},
                            {DNNL_ARG_DIFF_SRC, 0, true, primitive.diff_src_desc()}});
  });
}

std::vector<KernelOffer> linear_backward_weights(const KernelRequest& r, std::span<const Layout>) {
  if (!has_product(r)) return {};
  const bool bias = r.outputs.size() > 1;
  return offers(r, [&](Weights layout) -> std::optional<KernelOffer> {
    const auto with_weights = [&](DType dtype) {
      return describe(r.inputs[0], {r.outputs[0].shape, dtype}, r.inputs[1], bias, layout);
    };
    const auto hint = forward_product(with_weights(r.inputs[0].dtype), attributes());
    if (!hint) return std::nullopt;
    const auto primitive = weight_gradient(with_weights(DType::F32), attributes(), hint);
    if (!primitive) return std::nullopt;
    std::vector<Binding> bindings{{DNNL_ARG_SRC, 0, false, primitive.src_desc()},
                                  {DNNL_ARG_DIFF_DST, 1, false, primitive.diff_dst_desc()},
                                  {DNNL_ARG_DIFF_WEIGHTS, 0, true, primitive.diff_weights_desc()}};
    if (bias) bindings.push_back({DNNL_ARG_DIFF_BIAS, 1, true, primitive.diff_bias_desc()});
    return primitive_offer(r, primitive, std::move(bindings));
  });
}

namespace {

// An operand or the result as a stack of matrices of `rank` dimensions, dimensions of 1 in front. A transposed operand
// is the same memory with its strides exchanged.
dnnl::memory::desc matrices(const Type& t, int rank, bool transpose) {
  const auto front = static_cast<std::size_t>(rank - t.shape.rank()), last = static_cast<std::size_t>(rank) - 1;
  dnnl::memory::dims dims(front, 1), strides(last + 1, 1);
  dims.insert(dims.end(), t.shape.dims().begin(), t.shape.dims().end());
  for (std::size_t i = last; i > 0; --i) strides[i - 1] = strides[i] * dims[i];
  if (transpose) {
    std::swap(dims[last], dims[last - 1]);
    std::swap(strides[last], strides[last - 1]);
  }
  return {dims, data_type(t.dtype), strides};
}

}  // namespace

std::vector<KernelOffer> matmul(const KernelRequest& r, std::span<const Layout>) {
  const int rank = r.outputs[0].shape.rank();
  if (!has_product(r) || rank > DNNL_MAX_NDIMS) return {};
  const auto& op = r.as<MatmulOp>();
  const auto a = matrices(r.inputs[0], rank, op.transpose_a()), b = matrices(r.inputs[1], rank, op.transpose_b());
  const auto y = descriptor(r.outputs[0]);
  const auto primitive = matrix_product(a, b, y, attributes());
  if (!primitive) return {};
  // Its loops without vectors, for stacks that it cannot take otherwise, lose to OpenBLAS.
  if (rank > 2 && std::string_view(primitive.impl_info_str()).starts_with("ref")) return {};
  auto offer = primitive_offer(
      r, primitive, {{DNNL_ARG_SRC, 0, false, a}, {DNNL_ARG_WEIGHTS, 1, false, b}, {DNNL_ARG_DST, 0, true, y}});
  if (!offer) return {};
  offer->inputs = {{}, {}};
  return {*std::move(offer)};
}

}  // namespace lockstep::kernels::onednn

#include "lockstep/ops/spectral_product.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/cast.h"

namespace lockstep {
namespace {

using SpectralResult = SpectralProductOptions::Result;

Value apply_product(SpectralResult result, Value a, bool conjugate_a, Value b, bool conjugate_b) {
  return apply_op(std::make_shared<SpectralProductOp>(SpectralProductOptions{
                      .result = result, .conjugate_first = conjugate_a, .conjugate_second = conjugate_b}),
                  {a, b});
}

}  // namespace

std::vector<Type> SpectralProductOp::infer(std::string_view path, std::span<const Type> inputs) const {
  const Shape &a = inputs[0].shape, &b = inputs[1].shape;
  check(a.rank() >= 3 && b.rank() == a.rank() && a[a.rank() - 1] == 2 && b[b.rank() - 1] == 2, name(),
        "{}: operands are {} and {}, expected (samples, channels, modes..., 2) and (in, out, modes..., 2)", path,
        inputs[0].str(), inputs[1].str());
  check(inputs[0].dtype == inputs[1].dtype && is_floating(inputs[0].dtype), name(), "{}: operands are {} and {}: {}",
        path, inputs[0].str(), inputs[1].str(), kTypesDiffer);
  check(a.tail().tail() == b.tail().tail(), name(), "{}: operands are {} and {}, expected the same modes", path,
        inputs[0].str(), inputs[1].str());
  const bool output = options_.result == SpectralResult::Output, weights = options_.result == SpectralResult::Weights;
  const int summed_a = weights ? 0 : 1, summed_b = output || weights ? 0 : 1;
  check(a[summed_a] == b[summed_b], name(), "{}: operands are {} and {}, expected {} {}, not {}", path, inputs[0].str(),
        inputs[1].str(), a[summed_a], weights ? "samples" : "channels", b[summed_b]);
  Shape y = a;
  y[0] = a[1 - summed_a];
  y[1] = b[1 - summed_b];
  return {{std::move(y), inputs[0].dtype}};
}

// With operands as they are read, c = a' b': the gradient of a' is g conj(b'), and that of a conjugated one its
// conjugate, conj(g) b'.
std::vector<Value> SpectralProductOp::gradient(const Request& r) const {
  const Value a = r.inputs[0], b = r.inputs[1], g = r.gradients[0];
  const bool ca = options_.conjugate_first, cb = options_.conjugate_second;
  // How g and the other operand are conjugated, for the gradient of either operand.
  const bool g_for_a = ca, b_for_a = ca ? cb : !cb, g_for_b = cb, a_for_b = cb ? ca : !ca;
  std::vector<Value> result(2);
  switch (options_.result) {
    case SpectralResult::Output:  // a = x, b = w, g = y
      if (r.needed[0]) result[0] = apply_product(SpectralResult::Input, g, g_for_a, b, b_for_a);
      if (r.needed[1]) result[1] = apply_product(SpectralResult::Weights, a, a_for_b, g, g_for_b);
      break;
    case SpectralResult::Input:  // a = y, b = w, g = x
      if (r.needed[0]) result[0] = apply_product(SpectralResult::Output, g, g_for_a, b, b_for_a);
      if (r.needed[1]) result[1] = apply_product(SpectralResult::Weights, g, g_for_b, a, a_for_b);
      break;
    case SpectralResult::Weights:  // a = x, b = y, g = w
      if (r.needed[0]) result[0] = apply_product(SpectralResult::Input, b, b_for_a, g, g_for_a);
      if (r.needed[1]) result[1] = apply_product(SpectralResult::Output, a, a_for_b, g, g_for_b);
      break;
  }
  return result;
}

double SpectralProductOp::flops(std::span<const Type> inputs, std::span<const Type> outputs) const {
  const std::int64_t terms = inputs[0].shape[options_.result == SpectralResult::Weights ? 0 : 1];
  return 4.0 * static_cast<double>(outputs[0].shape.elements()) * static_cast<double>(terms);
}

std::string SpectralProductOp::attributes() const {
  std::string text = options_.conjugate_first ? "conj(" : "(";
  switch (options_.result) {
    case SpectralResult::Output:
      text += "x) ";
      text += options_.conjugate_second ? "conj(w)" : "(w)";
      break;
    case SpectralResult::Input:
      text += "y) ";
      text += options_.conjugate_second ? "conj(w)^T" : "(w)^T";
      break;
    case SpectralResult::Weights:
      text += "x)^T ";
      text += options_.conjugate_second ? "conj(y)" : "(y)";
      break;
  }
  return text;
}

Value spectral_product(Value x, Value weight) {
  return apply_product(SpectralResult::Output, cast(x, sum_type(x.dtype())), false,
                       cast(weight, sum_type(weight.dtype())), false);
}

}  // namespace lockstep

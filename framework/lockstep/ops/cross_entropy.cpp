#include "lockstep/ops/cross_entropy.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/loss_weights.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/shape_axes.h"

namespace lockstep {
namespace {

void require_logits(std::string_view op, std::string_view path, std::span<const Type> inputs) {
  check(inputs[0].shape.rank() == 2, op, "{}: logits are {}, expected (samples, classes)", path, inputs[0].str());
  check(inputs[1].dtype == DType::I32 && inputs[1].shape == Shape{inputs[0].shape[0]}, op,
        "{}: targets are {}, expected i32({}), one class index per sample", path, inputs[1].str(), inputs[0].shape[0]);
}

// The logits' shape without the dimension of classes.
Shape positions_of(const Shape& logits) {
  std::vector<std::int64_t> dims{logits[0]};
  for (int d = 2; d < logits.rank(); ++d) dims.push_back(logits[d]);
  return Shape(std::move(dims));
}

void require_targets(std::string_view op, std::string_view path, std::span<const Type> inputs) {
  const Type &logits = inputs[0], &targets = inputs[1];
  const Type expected{positions_of(logits.shape), DType::I32};
  if (is_floating(targets.dtype)) {
    check(targets == logits, op, "{}: targets are {}, expected class indices {} or probabilities {}", path,
          targets.str(), expected.str(), logits.str());
    return;
  }
  if (logits.shape.rank() == 2) return require_logits(op, path, inputs);
  check(targets == expected, op, "{}: targets are {}, expected {}, one class index per position, for logits {}", path,
        targets.str(), expected.str(), logits.str());
}

}  // namespace

std::vector<Type> CrossEntropyOp::infer(std::string_view path, std::span<const Type> inputs) const {
  check(inputs[0].shape.rank() >= 2, name(),
        "{}: logits are {}, expected (samples, classes) or (samples, classes, ...)", path, inputs[0].str());
  require_targets(name(), path, inputs);
  const auto classes = static_cast<std::size_t>(inputs[0].shape[1]);
  check(options_.class_weights.empty() || options_.class_weights.size() == classes, name(),
        "{}: {} class weights for {} classes", path, options_.class_weights.size(), classes);
  check(std::ranges::none_of(options_.class_weights, [](double w) { return !(w >= 0); }), name(),
        "{}: a class weight is negative or not a number, expected 0 or more", path);
  check(options_.label_smoothing >= 0 && options_.label_smoothing <= 1, name(),
        "{}: label smoothing {} is not in [0, 1]", path, options_.label_smoothing);
  const Type scalar{Shape{}, inputs[0].dtype};
  return {scalar, scalar, inputs[0]};
}

std::vector<Value> CrossEntropyOp::gradient(const Request& r) const {
  check(!r.gradients[2], name(), "{}: the probabilities have no gradient, expected the loss or its sum of weights",
        axes::path(r.inputs[0]));
  check(std::find(r.needed.begin() + 1, r.needed.end(), true) == r.needed.end(), name(),
        "the targets or weights depend on a parameter, expected constants: only the logits have a gradient");
  if (!r.gradients[0]) return std::vector<Value>(r.inputs.size());  // the sum of weights does not depend on the logits
  std::vector<Value> inputs{r.outputs[2], r.inputs[1], r.gradients[0], r.outputs[1]};
  inputs.insert(inputs.end(), r.inputs.begin() + 2, r.inputs.end());
  std::vector<Value> result(r.inputs.size());
  result[0] = apply_op(std::make_shared<CrossEntropyGradientOp>(options_), std::move(inputs));
  return result;
}

std::vector<Type> CountCorrectOp::infer(std::string_view path, std::span<const Type> inputs) const {
  require_logits(name(), path, inputs);
  check(k_ >= 1, name(), "{}: top-{} is empty", path, k_);
  return {{Shape{}, DType::F64}};
}

Loss cross_entropy(Value logits, Value target, CrossEntropyOptions options, const LossWeights& weights) {
  const Value wide = cast(logits, sum_type(logits.dtype()));
  std::vector<Value> inputs{wide, target.dtype() == DType::BF16 ? cast(target, wide.dtype()) : target};
  if (weights.sample || weights.mask) {
    check(wide.shape().rank() >= 2, "cross_entropy", "{}: logits are {}, expected (samples, classes, ...)",
          axes::path(wide), wide.type().str());
    const Shape positions = positions_of(wide.shape());
    inputs.push_back(broadcast_to(element_weights("cross_entropy", weights, {positions, wide.dtype()}), positions));
  }
  const auto outputs = logits.graph().apply(std::make_shared<CrossEntropyOp>(std::move(options)), std::move(inputs));
  return {outputs[0], outputs[1]};
}

Value count_correct(Value logits, Value target, std::int64_t k) {
  return apply_op(std::make_shared<CountCorrectOp>(k), {cast(logits, sum_type(logits.dtype())), target});
}

}  // namespace lockstep

#include "lockstep/ops/cross_entropy.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/cast.h"

namespace lockstep {
namespace {

void require_logits(std::string_view op, std::string_view path, std::span<const Type> inputs) {
  check(inputs[0].shape.rank() == 2, op, "{}: logits are {}, expected (samples, classes)", path, inputs[0].str());
  check(inputs[1].dtype == DType::I32 && inputs[1].shape == Shape{inputs[0].shape[0]}, op,
        "{}: targets are {}, expected i32({}), one class index per sample", path, inputs[1].str(), inputs[0].shape[0]);
}

}  // namespace

std::vector<Type> CrossEntropyOp::infer(std::string_view path, std::span<const Type> inputs) const {
  require_logits(name(), path, inputs);
  const auto classes = static_cast<std::size_t>(inputs[0].shape[1]);
  check(options_.class_weights.empty() || options_.class_weights.size() == classes, name(),
        "{}: {} class weights for {} classes", path, options_.class_weights.size(), classes);
  check(options_.label_smoothing >= 0 && options_.label_smoothing <= 1, name(),
        "{}: label smoothing {} is not in [0, 1]", path, options_.label_smoothing);
  const Type scalar{Shape{}, inputs[0].dtype};
  return {scalar, scalar, inputs[0]};
}

std::vector<Value> CrossEntropyOp::gradient(const Request& r) const {
  check(r.gradients[0] && !r.gradients[1] && !r.gradients[2], name(), "only the loss itself can be differentiated");
  return {apply_op(std::make_shared<CrossEntropyGradientOp>(options_),
                   {r.outputs[2], r.inputs[1], r.gradients[0], r.outputs[1]}),
          {}};
}

std::vector<Type> CountCorrectOp::infer(std::string_view path, std::span<const Type> inputs) const {
  require_logits(name(), path, inputs);
  check(k_ >= 1, name(), "{}: top-{} is empty", path, k_);
  return {{Shape{}, DType::F64}};
}

Loss cross_entropy(Value logits, Value target, CrossEntropyOptions options) {
  const auto outputs = logits.graph().apply(std::make_shared<CrossEntropyOp>(std::move(options)),
                                            {cast(logits, sum_type(logits.dtype())), target});
  return {outputs[0], outputs[1]};
}

Value count_correct(Value logits, Value target, std::int64_t k) {
  return apply_op(std::make_shared<CountCorrectOp>(k), {cast(logits, sum_type(logits.dtype())), target});
}

}  // namespace lockstep

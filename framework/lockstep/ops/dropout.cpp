#include "lockstep/ops/dropout.h"

#include "lockstep/core/error.h"

namespace lockstep {

std::vector<Type> DropoutOp::infer(std::string_view path, std::span<const Type> inputs) const {
  check(probability_ >= 0 && probability_ < 1, name(), "{}: probability {} is not in [0, 1)", path, probability_);
  check(inputs[0].shape.rank() >= 1, name(), "{}: input is a scalar, expected a batch", path);
  return {inputs[0]};
}

std::vector<Value> DropoutOp::gradient(const Request& r) const {
  return {
      apply_op(std::make_shared<DropoutOp>(probability_, key_), {r.gradients[0], r.inputs[1], r.inputs[2]}), {}, {}};
}

Value dropout(Value x, double probability, std::string_view call_site) {
  check(x.shape().rank() >= 1, "dropout", "{}: input is a scalar, expected a batch", call_site);
  if (!x.graph().training() || probability == 0) return x;
  return apply_op(std::make_shared<DropoutOp>(probability, x.graph().random_key(call_site)),
                  {x, x.graph().step(), x.graph().sample_ids(x.shape()[0])});
}

}  // namespace lockstep

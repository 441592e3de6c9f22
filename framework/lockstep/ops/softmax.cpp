#include "lockstep/ops/softmax.h"

#include "lockstep/core/error.h"

namespace lockstep {

std::vector<Type> SoftmaxOp::infer(std::string_view place, std::span<const Type> inputs) const {
  check(inputs[0].shape.rank() == 2 && is_floating(inputs[0].dtype), name(),
        "{}: input is {}, expected (samples, classes) of a floating type", place, inputs[0].str());
  return {inputs[0]};
}

std::vector<Value> SoftmaxOp::gradient(const Request& r) const {
  return {apply_op(std::make_shared<SoftmaxGradientOp>(), {r.outputs[0], r.gradients[0]})};
}

Value softmax(Value x) { return apply_op(std::make_shared<SoftmaxOp>(), {x}); }

}  // namespace lockstep

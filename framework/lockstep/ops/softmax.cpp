#include "lockstep/ops/softmax.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/pointwise.h"

namespace lockstep {

std::vector<Type> SoftmaxOp::infer(std::string_view path, std::span<const Type> inputs) const {
  check(inputs[0].shape.rank() == 2 && is_floating(inputs[0].dtype), name(),
        "{}: input is {}, expected (samples, classes) of a floating type", path, inputs[0].str());
  return {inputs[0]};
}

std::vector<Value> SoftmaxOp::gradient(const Request& r) const {
  return {apply_op(std::make_shared<SoftmaxGradientOp>(), {r.outputs[0], r.gradients[0]})};
}

// With s = sum y dy and t = sum y g per row: dL/d dy = y (g - t), dL/dy = g (dy - s) - dy t.
std::vector<Value> SoftmaxGradientOp::gradient(const Request& r) const {
  const Value y = r.inputs[0], dy = r.inputs[1], g = r.gradients[0];
  const Shape rows{y.shape()[0], 1};
  std::vector<Value> result(2);
  if (r.needed[0]) result[0] = g * (dy - sum_to(y * dy, rows)) - dy * sum_to(y * g, rows);
  if (r.needed[1]) result[1] = apply_op(std::make_shared<SoftmaxGradientOp>(), {y, g});
  return result;
}

Value softmax(Value x) { return apply_op(std::make_shared<SoftmaxOp>(), {x}); }

}  // namespace lockstep

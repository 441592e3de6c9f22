#include "lockstep/ops/softmax.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"

namespace lockstep {

std::vector<Type> SoftmaxOp::infer(std::string_view path, std::span<const Type> inputs) const {
  const int rank = inputs[0].shape.rank();
  check(is_floating(inputs[0].dtype), name(), "{}: input is {}, expected a floating type", path, inputs[0].str());
  check(axis_ >= -rank && axis_ < rank, name(), "{}: axis is {}, expected {} to {} for an input {}", path, axis_, -rank,
        rank - 1, inputs[0].str());
  return {inputs[0]};
}

std::vector<Value> SoftmaxOp::gradient(const Request& r) const {
  return {apply_op(std::make_shared<SoftmaxGradientOp>(axis_), {r.outputs[0], r.gradients[0]})};
}

// With s = sum y dy and t = sum y g along the axis: dL/d dy = y (g - t), dL/dy = g (dy - s) - dy t.
std::vector<Value> SoftmaxGradientOp::gradient(const Request& r) const {
  const Value y = r.inputs[0], dy = r.inputs[1], g = r.gradients[0];
  std::vector<Value> result(2);
  if (r.needed[0]) {
    const Value s = sum(y * dy, axis_, true), t = sum(y * g, axis_, true);
    result[0] = cast(g * (dy - s) - dy * t, y.dtype());
  }
  if (r.needed[1]) result[1] = apply_op(std::make_shared<SoftmaxGradientOp>(axis_), {y, g});
  return result;
}

Value softmax(Value x, int axis) { return apply_op(std::make_shared<SoftmaxOp>(axis), {x}); }

Value log_softmax(Value x, int axis) {
  const Value wide = cast(x, sum_type(x.dtype()));
  // Differences of logits are small where the logits may not be.
  const Value below_top = wide - detach(amax(wide, axis, true));
  return below_top - logsumexp(below_top, axis, true);
}

}  // namespace lockstep

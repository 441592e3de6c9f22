#include "lockstep/ops/reshape.h"

#include "lockstep/core/error.h"

namespace lockstep {

std::vector<Type> ReshapeOp::infer(std::string_view path, std::span<const Type> inputs) const {
  check(inputs[0].shape.elements() == shape_.elements(), name(), "{}: input {} has {} elements, shape {} expects {}",
        path, inputs[0].str(), inputs[0].shape.elements(), shape_.str(), shape_.elements());
  return {{shape_, inputs[0].dtype}};
}

std::vector<Value> ReshapeOp::gradient(const Request& r) const {
  return {reshape(r.gradients[0], r.inputs[0].shape())};
}

Value reshape(Value x, Shape shape) { return apply_op(std::make_shared<ReshapeOp>(std::move(shape)), {x}); }

Value flatten(Value x) {
  check(x.shape().rank() >= 1, "flatten", "input is a scalar, expected a batch");
  return reshape(x, {x.shape()[0], x.shape().tail().elements()});
}

}  // namespace lockstep

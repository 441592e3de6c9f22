#include "lockstep/ops/to_floating.h"

#include "lockstep/core/error.h"

namespace lockstep {

std::vector<Type> ToFloatingOp::infer(std::string_view path, std::span<const Type> inputs) const {
  check(!is_floating(inputs[0].dtype) && is_floating(dtype_), name(),
        "{}: no conversion from {} to {}, expected an integer type and a floating one", path, name_of(inputs[0].dtype),
        name_of(dtype_));
  return {{inputs[0].shape, dtype_}};
}

Value to_floating(Value x, DType dtype) { return apply_op(std::make_shared<ToFloatingOp>(dtype), {x}); }

}  // namespace lockstep

#include "lockstep/ops/cast.h"

#include "lockstep/core/error.h"

namespace lockstep {

std::vector<Type> CastOp::infer(std::string_view path, std::span<const Type> inputs) const {
  const auto converts = [](DType t) { return t == DType::F32 || t == DType::BF16; };
  check(converts(inputs[0].dtype) && converts(dtype_), name(), "{}: no conversion from {} to {}", path,
        name_of(inputs[0].dtype), name_of(dtype_));
  return {{inputs[0].shape, dtype_}};
}

std::vector<Value> CastOp::gradient(const Request& r) const { return {cast(r.gradients[0], r.inputs[0].dtype())}; }

Value cast(Value x, DType dtype) { return x.dtype() == dtype ? x : apply_op(std::make_shared<CastOp>(dtype), {x}); }

Value cast_for_product(Value x) {
  const bool lowers = x.graph().matrix_dtype() == DType::BF16 && x.dtype() == DType::F32;
  return lowers ? cast(x, DType::BF16) : x;
}

}  // namespace lockstep

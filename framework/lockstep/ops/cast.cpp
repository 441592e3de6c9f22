#include "lockstep/ops/cast.h"

#include "lockstep/core/error.h"

namespace lockstep {

std::vector<Type> CastOp::infer(std::string_view path, std::span<const Type> inputs) const {
  const DType from = inputs[0].dtype;
  const bool by_f32 = from == DType::F32 || dtype_ == DType::F32;
  const auto is_float = [](DType t) { return t == DType::F32 || t == DType::F64 || t == DType::BF16; };
  check(by_f32 && is_float(from) && is_float(dtype_), name(), "{}: no conversion from {} to {}", path,
        name_of(inputs[0].dtype), name_of(dtype_));
  return {{inputs[0].shape, dtype_}};
}

std::vector<Value> CastOp::gradient(const Request& r) const { return {cast(r.gradients[0], r.inputs[0].dtype())}; }

Value cast(Value x, DType dtype) {
  if (x.dtype() == dtype) return x;
  const auto apply = [](Value v, DType to) { return apply_op(std::make_shared<CastOp>(to), {v}); };
  const bool by_way_of_f32 =
      (x.dtype() == DType::BF16 && dtype == DType::F64) || (x.dtype() == DType::F64 && dtype == DType::BF16);
  return apply(by_way_of_f32 ? apply(x, DType::F32) : x, dtype);
}

Value cast_for_product(Value x) {
  const bool lowers = x.graph().matrix_dtype() == DType::BF16 && x.dtype() == DType::F32;
  return lowers ? cast(x, DType::BF16) : x;
}

}  // namespace lockstep

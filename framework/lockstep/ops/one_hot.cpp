#include "lockstep/ops/one_hot.h"

#include "lockstep/core/error.h"

namespace lockstep {

std::vector<Type> OneHotOp::infer(std::string_view path, std::span<const Type> inputs) const {
  check(inputs[0].dtype == DType::I32 && inputs[0].shape.rank() >= 1, name(),
        "{}: the input is {}, expected class indices i32 (samples, ...)", path, inputs[0].str());
  check(dtype_ == DType::F32 || dtype_ == DType::F64, name(), "{}: the result would be {}, expected f32 or f64", path,
        name_of(dtype_));
  check(classes_ >= 1, name(), "{}: {} classes, expected 1 or more", path, classes_);
  std::vector<std::int64_t> dims = inputs[0].shape.dims();
  dims.insert(dims.begin() + 1, classes_);
  return {{Shape(std::move(dims)), dtype_}};
}

Value one_hot_channels(Value labels, std::int64_t classes, DType dtype, std::optional<std::int32_t> ignore_index) {
  return apply_op(std::make_shared<OneHotOp>(classes, dtype, ignore_index), {labels});
}

}  // namespace lockstep

#include "lockstep/ops/reshape.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/shape_axes.h"

namespace lockstep {

std::vector<Type> ReshapeOp::infer(std::string_view path, std::span<const Type> inputs) const {
  for (const std::int64_t size : shape_.dims()) {
    check(size >= 0, name(), "{}: input {}, shape {}: a size of {} is not computed from the others; write it out", path,
          inputs[0].str(), shape_.str(), size);
  }
  check(inputs[0].shape.elements() == shape_.elements(), name(), "{}: input {} has {} elements, shape {} expects {}",
        path, inputs[0].str(), inputs[0].shape.elements(), shape_.str(), shape_.elements());
  return {{shape_, inputs[0].dtype}};
}

std::vector<Value> ReshapeOp::gradient(const Request& r) const {
  return {reshape(r.gradients[0], r.inputs[0].shape())};
}

Value reshape(Value x, Shape shape) { return apply_op(std::make_shared<ReshapeOp>(std::move(shape)), {x}); }

Value flatten(Value x) {
  check(x.shape().rank() >= 1, "flatten", "{}: input is a scalar, expected a batch", axes::path(x));
  return reshape(x, {x.shape()[0], x.shape().tail().elements()});
}

Value flatten(Value x, int start, int end) {
  if (x.shape().rank() == 0) return reshape(x, Shape{1});
  start = axes::of("flatten", x, start);
  end = axes::of("flatten", x, end);
  check(start <= end, "flatten", "{}: axes {} to {} of {}, expected the first one in front", axes::path(x), start, end,
        x.type().str());
  const auto& dims = x.shape().dims();
  std::vector<std::int64_t> now(dims.begin(), dims.begin() + start + 1);
  for (int d = start + 1; d <= end; ++d) now.back() *= x.shape()[d];
  now.insert(now.end(), dims.begin() + end + 1, dims.end());
  return reshape(x, Shape(std::move(now)));
}

Value squeeze(Value x) {
  std::vector<std::int64_t> dims = x.shape().dims();
  std::erase(dims, 1);
  return reshape(x, Shape(std::move(dims)));
}

Value squeeze(Value x, int axis) {
  axis = axes::of("squeeze", x, axis);
  return x.shape()[axis] == 1 ? reshape(x, axes::replaced(x.shape(), axis, {})) : x;
}

Value unsqueeze(Value x, int axis) {
  axis = axes::of_new("unsqueeze", x, axis);
  std::vector<std::int64_t> dims = x.shape().dims();
  dims.insert(dims.begin() + axis, 1);
  return reshape(x, Shape(std::move(dims)));
}

}  // namespace lockstep

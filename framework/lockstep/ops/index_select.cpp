#include "lockstep/ops/index_select.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/ops/shape_axes.h"

namespace lockstep {
namespace {

// Whether `indices` has the axes of `x`, and no more elements than x along any but `axis`.
void check_gathered(std::string_view op, std::string_view path, const Shape& x, const Shape& indices, int axis) {
  bool fits = x.rank() == indices.rank() && axis < x.rank();
  for (int d = 0; fits && d < x.rank(); ++d) fits = d == axis || indices[d] <= x[d];
  check(fits, op,
        "{}: indices are {} for a value {}, expected as many axes, and no more elements along any but axis {}", path,
        indices.str(), x.str(), axis);
}

}  // namespace

void require_indices(std::string_view op, std::string_view path, const Type& indices) {
  check(indices.dtype == DType::I32, op, "{}: indices are {}, expected i32", path, indices.str());
}

std::vector<Type> IndexSelectOp::infer(std::string_view path, std::span<const Type> inputs) const {
  require_indices(name(), path, inputs[1]);
  check(axis_ < inputs[0].shape.rank(), name(), "{}: input is {}, which has no axis {}", path, inputs[0].str(), axis_);
  return {{axes::replaced(inputs[0].shape, axis_, inputs[1].shape.dims()), inputs[0].dtype}};
}

std::vector<Value> IndexSelectOp::gradient(const Request& r) const {
  return {apply_op(std::make_shared<IndexAddOp>(axis_, r.inputs[0].shape()[axis_]), {r.gradients[0], r.inputs[1]}), {}};
}

std::vector<Type> IndexAddOp::infer(std::string_view path, std::span<const Type> inputs) const {
  require_indices(name(), path, inputs[1]);
  const Shape &dy = inputs[0].shape, &indices = inputs[1].shape;
  bool fits = is_floating(inputs[0].dtype) && dy.rank() >= axis_ + indices.rank();
  for (int d = 0; fits && d < indices.rank(); ++d) fits = dy[axis_ + d] == indices[d];
  check(fits, name(), "{}: input is {}, indices are {}, expected a floating type and these sizes from axis {} on", path,
        inputs[0].str(), indices.str(), axis_);
  std::vector<std::int64_t> dims = dy.dims();
  dims.erase(dims.begin() + axis_, dims.begin() + axis_ + indices.rank());
  dims.insert(dims.begin() + axis_, size_);
  return {{Shape(std::move(dims)), inputs[0].dtype}};
}

std::vector<Value> IndexAddOp::gradient(const Request& r) const {
  return {index_select(r.gradients[0], axis_, r.inputs[1]), {}};
}

std::vector<Type> GatherOp::infer(std::string_view path, std::span<const Type> inputs) const {
  require_indices(name(), path, inputs[1]);
  check_gathered(name(), path, inputs[0].shape, inputs[1].shape, axis_);
  return {{inputs[1].shape, inputs[0].dtype}};
}

std::vector<Value> GatherOp::gradient(const Request& r) const {
  return {apply_op(std::make_shared<ScatterAddOp>(axis_, r.inputs[0].shape()), {r.gradients[0], r.inputs[1]}), {}};
}

std::vector<Type> ScatterAddOp::infer(std::string_view path, std::span<const Type> inputs) const {
  require_indices(name(), path, inputs[1]);
  check_gathered(name(), path, shape_, inputs[1].shape, axis_);
  check(inputs[0].shape == inputs[1].shape && is_floating(inputs[0].dtype), name(),
        "{}: input is {}, indices are {}, expected a floating type and one shape", path, inputs[0].str(),
        inputs[1].str());
  return {{shape_, inputs[0].dtype}};
}

std::vector<Value> ScatterAddOp::gradient(const Request& r) const {
  return {gather(r.gradients[0], axis_, r.inputs[1]), {}};
}

Value index_select(Value x, int axis, Value indices) {
  return apply_op(std::make_shared<IndexSelectOp>(axes::of("index_select", x, axis)), {x, indices});
}

Value gather(Value x, int axis, Value indices) {
  return apply_op(std::make_shared<GatherOp>(axes::of("gather", x, axis)), {x, indices});
}

}  // namespace lockstep

#include "lockstep/ops/embedding.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/index_select.h"
#include "lockstep/ops/shape_axes.h"

namespace lockstep {

std::vector<Type> EmbeddingOp::infer(std::string_view path, std::span<const Type> inputs) const {
  require_indices(name(), path, inputs[1]);
  check(inputs[0].shape.rank() == 2 && is_floating(inputs[0].dtype), name(),
        "{}: the table is {}, expected (rows, elements of a row) of a floating type", path, inputs[0].str());
  check(!padding_ || (*padding_ >= 0 && *padding_ < inputs[0].shape[0]), name(),
        "{}: the padding row is {}, expected 0 to {}", path, padding_.value_or(0), inputs[0].shape[0] - 1);
  return {{axes::replaced(inputs[0].shape, 0, inputs[1].shape.dims()), inputs[0].dtype}};
}

std::vector<Value> EmbeddingOp::gradient(const Request& r) const {
  return {
      apply_op(std::make_shared<EmbeddingGradientOp>(r.inputs[0].shape()[0], padding_), {r.gradients[0], r.inputs[1]}),
      {}};
}

std::string EmbeddingOp::attributes() const {
  return padding_ ? formatted("padding row {}{}", *padding_, masks_ ? ", as 0" : "") : "";
}

std::vector<Type> EmbeddingGradientOp::infer(std::string_view path, std::span<const Type> inputs) const {
  require_indices(name(), path, inputs[1]);
  const Shape& dy = inputs[0].shape;
  check(dy.rank() == inputs[1].shape.rank() + 1 && is_floating(inputs[0].dtype), name(),
        "{}: input is {} for indices {}, expected a floating type and one axis more", path, inputs[0].str(),
        inputs[1].str());
  return {{Shape{rows_, dy[dy.rank() - 1]}, inputs[0].dtype}};
}

std::vector<Value> EmbeddingGradientOp::gradient(const Request& r) const {
  return {apply_op(std::make_shared<EmbeddingOp>(padding_, padding_.has_value()), {r.gradients[0], r.inputs[1]}), {}};
}

Value embedding(Value indices, Value table, std::optional<std::int64_t> padding) {
  return apply_op(std::make_shared<EmbeddingOp>(padding), {table, indices});
}

}  // namespace lockstep

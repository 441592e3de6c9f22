#include "lockstep/ops/class_counts.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/cast.h"

namespace lockstep {
namespace {

// Whether `value` is cast(source, dtype).
bool is_cast_of(Value value, Value source, DType dtype) {
  if (value == source) return source.dtype() == dtype;
  const Node& node = value.graph().node(value);
  return value.dtype() == dtype && dynamic_cast<const CastOp*>(node.op.get()) != nullptr && node.inputs[0] == source;
}

// Returns the counts that the graph has already, as several metrics follow from the same ones; empty: it has none.
Value known_counts(Value logits, Value target, bool matrix, std::optional<std::int32_t> ignore_index) {
  const Graph& graph = logits.graph();
  const DType wide = sum_type(logits.dtype()), same = is_floating(target.dtype()) ? wide : target.dtype();
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    const auto* op = dynamic_cast<const ClassCountsOp*>(node.op.get());
    if (op != nullptr && op->matrix() == matrix && op->ignore_index() == ignore_index &&
        is_cast_of(node.inputs[0], logits, wide) && is_cast_of(node.inputs[1], target, same))
      return graph.value(static_cast<int>(n), 0);
  }
  return {};
}

Value counts_of(Value logits, Value target, bool matrix, std::optional<std::int32_t> ignore_index) {
  if (const Value known = known_counts(logits, target, matrix, ignore_index)) return known;
  const Value wide = cast(logits, sum_type(logits.dtype()));
  const Value same = is_floating(target.dtype()) ? cast(target, wide.dtype()) : target;
  return apply_op(std::make_shared<ClassCountsOp>(matrix, ignore_index), {wide, same});
}

}  // namespace

std::vector<Type> ClassCountsOp::infer(std::string_view path, std::span<const Type> inputs) const {
  const Type &logits = inputs[0], &targets = inputs[1];
  std::int64_t classes = 2;
  if (is_floating(targets.dtype)) {
    check(targets == logits && logits.shape.rank() >= 1, name(),
          "{}: targets are {} for logits {}, expected numbers of the same shape, or class indices", path, targets.str(),
          logits.str());
  } else {
    check(logits.shape.rank() >= 2, name(), "{}: logits are {}, expected (samples, classes) or (samples, classes, ...)",
          path, logits.str());
    std::vector<std::int64_t> positions = logits.shape.dims();
    classes = positions[1];
    positions.erase(positions.begin() + 1);
    const Type expected{Shape(std::move(positions)), DType::I32};
    check(targets == expected, name(), "{}: targets are {} for logits {}, expected {}, one class index per position",
          path, targets.str(), logits.str(), expected.str());
  }
  return {{matrix_ ? Shape{classes, classes} : Shape{3, classes}, DType::F64}};
}

Value class_counts(Value logits, Value target, std::optional<std::int32_t> ignore_index) {
  return counts_of(logits, target, false, ignore_index);
}

Value confusion_counts(Value logits, Value target, std::optional<std::int32_t> ignore_index) {
  return counts_of(logits, target, true, ignore_index);
}

}  // namespace lockstep

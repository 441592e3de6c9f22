#include "lockstep/ops/class_counts.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/cast.h"

namespace lockstep {
namespace {

Value counts_of(Value logits, Value target, bool matrix, std::optional<std::int32_t> ignore_index) {
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

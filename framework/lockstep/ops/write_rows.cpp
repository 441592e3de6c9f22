#include "lockstep/ops/write_rows.h"

#include "lockstep/core/error.h"

namespace lockstep {

std::vector<Type> WriteRowsOp::infer(std::string_view path, std::span<const Type> inputs) const {
  const Type &x = inputs[0], &rows = inputs[1];
  check(x.shape.rank() >= 2 && rows.shape.rank() == x.shape.rank() && rows.dtype == x.dtype, name(),
        "{}: the value is {} and the rows {}, expected (samples, positions, ...) of one type", path, x.str(),
        rows.str());
  check(rows.shape[0] == x.shape[0] && rows.shape[1] <= x.shape[1] && rows.shape.tail().tail() == x.shape.tail().tail(),
        name(), "{}: the value is {} and the rows {}, expected at most {} positions and else the same shape", path,
        x.str(), rows.str(), x.shape[1]);
  const Type expected{Shape{x.shape[0]}, DType::I32};
  check(inputs[2] == expected, name(), "{}: offsets are {}, expected {}", path, inputs[2].str(), expected.str());
  return {x};
}

Value write_rows(Value x, Value rows, Value offset) {
  return apply_op(std::make_shared<WriteRowsOp>(), {x, rows, offset});
}

}  // namespace lockstep

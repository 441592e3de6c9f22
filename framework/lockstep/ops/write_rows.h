// Rows of a value replaced at a position that is known when the plan runs, for caches of keys and values in generation.
// It has no gradient.
#pragma once

#include "lockstep/graph/graph.h"

namespace lockstep {

// (x (N, S, ...), rows (N, T, ...), offset i32 (N)) -> x with the rows.
class WriteRowsOp : public Op {
 public:
  std::string_view name() const override { return "write_rows"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
};

// Returns x (N, S, ...) in which positions offset[n] to offset[n] + T - 1 of sample n hold `rows` (N, T, ...). Throws
// Error where shapes or types do not fit; an offset outside 0 to S - T throws SampleError when the plan runs.
Value write_rows(Value x, Value rows, Value offset);

}  // namespace lockstep

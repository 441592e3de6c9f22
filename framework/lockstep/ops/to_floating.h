// Converts integers to a floating type: masks, labels, pixels. A result beyond 2^24 in f32, 2^8 in bf16 or 2^53 in f64
// is rounded to nearest even. It has no slope.
#pragma once

#include "lockstep/graph/graph.h"

namespace lockstep {

class ToFloatingOp : public Op {
 public:
  explicit ToFloatingOp(DType dtype) : dtype_(dtype) {}
  std::string_view name() const override { return "to_floating"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::string attributes() const override { return std::string(name_of(dtype_)); }

 private:
  DType dtype_;
};

// Returns x (u8, i32 or i64) as f32, f64 or bf16. Throws Error for other types.
Value to_floating(Value x, DType dtype);

}  // namespace lockstep

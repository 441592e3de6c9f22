// Converts a value to another layout, another element type (f32 and bf16), or both. The plan inserts these nodes where
// a kernel needs another form than the value has; a model converts types with cast().
#pragma once

#include "lockstep/graph/layout.h"
#include "lockstep/graph/op.h"

namespace lockstep {

class ReorderOp : public Op {
 public:
  ReorderOp(Layout target, DType dtype) : target_(std::move(target)), dtype_(dtype) {}
  const Layout& target() const { return target_; }
  std::string_view name() const override { return "reorder"; }
  std::vector<Type> infer(std::string_view, std::span<const Type> inputs) const override {
    return {{inputs[0].shape, dtype_}};
  }
  double flops(std::span<const Type>, std::span<const Type>) const override { return 0; }

 private:
  Layout target_;
  DType dtype_;
};

}  // namespace lockstep

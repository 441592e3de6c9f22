// The same value in another layout. Only the plan makes these nodes, where a kernel wants another layout than it is
// offered.
#pragma once

#include "lockstep/graph/layout.h"
#include "lockstep/graph/op.h"

namespace lockstep {

class ReorderOp : public Op {
 public:
  explicit ReorderOp(Layout target) : target_(std::move(target)) {}
  const Layout& target() const { return target_; }
  std::string_view name() const override { return "reorder"; }
  std::vector<Type> infer(std::string_view, std::span<const Type> inputs) const override { return {inputs[0]}; }
  double flops(std::span<const Type>, std::span<const Type>) const override { return 0; }

 private:
  Layout target_;
};

}  // namespace lockstep

// Reshape and flatten: the same elements under another shape, free of copying while the value is plain.
#pragma once

#include "lockstep/graph/graph.h"

namespace lockstep {

class ReshapeOp : public Op {
 public:
  explicit ReshapeOp(Shape shape) : shape_(std::move(shape)) {}
  std::string_view name() const override { return "reshape"; }
  std::vector<Type> infer(std::string_view place, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  bool is_view() const override { return true; }

 private:
  Shape shape_;
};

Value reshape(Value x, Shape shape);
Value flatten(Value x);  // (N, C, H, W) -> (N, C*H*W)

}  // namespace lockstep

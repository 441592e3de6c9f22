// Reshape and flatten: the same elements under another shape. A value in plain layout is not copied.
#pragma once

#include "lockstep/graph/graph.h"

namespace lockstep {

class ReshapeOp : public Op {
 public:
  explicit ReshapeOp(Shape shape) : shape_(std::move(shape)) {}
  std::string_view name() const override { return "reshape"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  bool is_view() const override { return true; }

 private:
  Shape shape_;
};

// Returns x under another shape. Throws Error where the number of elements differs.
Value reshape(Value x, Shape shape);
// Returns x (N, ...) as a matrix (N, elements of a sample).
Value flatten(Value x);

}  // namespace lockstep

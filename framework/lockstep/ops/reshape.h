// The same elements under another shape. A value in plain layout is not copied. Axes count as in PyTorch: -1 is the
// last one.
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
// Returns x with the axes from `start` to `end` joined into one, as torch.flatten.
Value flatten(Value x, int start, int end = -1);
// Returns x without its dimensions of 1, or without this one; a dimension of another size stays, as in PyTorch.
Value squeeze(Value x);
Value squeeze(Value x, int axis);
// Returns x with a dimension of 1 at this axis of the result.
Value unsqueeze(Value x, int axis);

}  // namespace lockstep

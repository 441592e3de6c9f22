// y = exp(x) / sum of exp(x) over one axis of x, and its logarithm. For a loss of classes use cross_entropy(), which
// needs one pass less.
#pragma once

#include "lockstep/core/format.h"
#include "lockstep/graph/graph.h"

namespace lockstep {

// Over `axis`; a negative one counts from the last dimension, -1.
class SoftmaxOp : public Op {
 public:
  explicit SoftmaxOp(int axis = -1) : axis_(axis) {}
  int axis() const { return axis_; }
  std::string_view name() const override { return "softmax"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  std::string attributes() const override { return formatted("axis {}", axis_); }

 private:
  int axis_;
};

// (y, dy) -> dx = y (dy - sum over the axis of y dy).
class SoftmaxGradientOp : public Op {
 public:
  explicit SoftmaxGradientOp(int axis = -1) : axis_(axis) {}
  int axis() const { return axis_; }
  std::string_view name() const override { return "softmax_gradient"; }
  std::vector<Type> infer(std::string_view, std::span<const Type> inputs) const override { return {inputs[1]}; }
  std::vector<Value> gradient(const Request& request) const override;
  std::string attributes() const override { return formatted("axis {}", axis_); }

 private:
  int axis_;
};

// Returns the softmax of x along `axis`. Throws Error for an axis that x does not have, or for an integer type.
Value softmax(Value x, int axis = -1);
// Returns the logarithm of the softmax, which is accurate for small probabilities too; of bf16 in f32. Throws as
// softmax() does.
Value log_softmax(Value x, int axis = -1);

}  // namespace lockstep

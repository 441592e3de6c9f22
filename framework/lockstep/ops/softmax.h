// y[n, c] = exp(x[n, c]) / sum over c of exp(x[n, c]) for x (N, C). For a loss use cross_entropy(), whose logarithm is
// accurate also for small probabilities.
#pragma once

#include "lockstep/graph/graph.h"

namespace lockstep {

class SoftmaxOp : public Op {
 public:
  std::string_view name() const override { return "softmax"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
};

// (y, dy) -> dx = y (dy - sum over c of y dy).
class SoftmaxGradientOp : public Op {
 public:
  std::string_view name() const override { return "softmax_gradient"; }
  std::vector<Type> infer(std::string_view, std::span<const Type> inputs) const override { return {inputs[1]}; }
  std::vector<Value> gradient(const Request& request) const override;
};

// Returns the softmax of each row of x (N, C). Throws Error for another rank or an integer type.
Value softmax(Value x);

}  // namespace lockstep

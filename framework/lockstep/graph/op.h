// One kind of computation, with its attributes: how shapes follow and how its gradient is written as further nodes.
// What it runs on is registered beside it, in kernels/. Ops are immutable and shared between graphs.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/graph/value.h"

namespace lockstep {

class Op {
 public:
  // The gradient request: for outputs y_i with gradients dL/dy_i (invalid Value: nothing depends on it), emit nodes for
  // dL/dx_j of the inputs that need one. The answer has one Value per input, invalid where not needed or zero.
  struct Request {
    std::span<const Value> inputs, outputs, gradients;
    const std::vector<bool>& needed;
  };

  virtual ~Op() = default;
  virtual std::string_view name() const = 0;  // the key of its kernels
  // Types of the outputs; throws Error("[op] place: ...") when the inputs do not fit.
  virtual std::vector<Type> infer(std::string_view place, std::span<const Type> inputs) const = 0;
  virtual std::vector<Value> gradient(const Request& request) const;  // default: throws, not differentiable
  virtual double flops(std::span<const Type> inputs,
                       std::span<const Type> outputs) const;  // default: elements of output 0
  virtual std::string attributes() const { return ""; }       // "3x3 stride 2", for printed plans
  // True if the one output is the first input's memory under another shape; such nodes cost nothing.
  virtual bool is_view() const { return false; }
  // True if all ranks must run it together, so that a plan with it runs on a rank without samples too.
  virtual bool is_collective() const { return false; }
};

}  // namespace lockstep

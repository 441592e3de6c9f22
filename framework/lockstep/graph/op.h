// One kind of computation, with its attributes: it infers the types of its outputs and writes its gradient as further
// nodes. The kernels that run it are registered by its name (kernels/registry.h). Ops are immutable; graphs share them.
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
  // A request for the gradient: given the outputs y_i and dL/dy_i (an invalid Value where L does not depend on y_i),
  // the op applies nodes that compute dL/dx_j for each input with needed[j].
  struct Request {
    std::span<const Value> inputs, outputs, gradients;
    const std::vector<bool>& needed;
  };

  virtual ~Op() = default;
  virtual std::string_view name() const = 0;  // the key of its kernels
  // Returns the types of the outputs. Throws Error("[op] path: ...") where the inputs do not fit; `path` is the module
  // path of the node.
  virtual std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const = 0;
  // Returns one Value per input: its gradient, or an invalid Value where the gradient is zero or not needed. An op that
  // does not override this is not differentiable: the call throws Error.
  virtual std::vector<Value> gradient(const Request& request) const;
  // Floating-point operations of one run; unless overridden, the number of elements of output 0.
  virtual double flops(std::span<const Type> inputs, std::span<const Type> outputs) const;
  // Bytes that a fused op neither reads nor writes, which passes of their own over memory would; 0 for other ops.
  virtual double saved_bytes(std::span<const Type> /*inputs*/) const { return 0; }
  // The attributes as text for printed plans and keys of autotuning: "3x3 stride 2".
  virtual std::string attributes() const { return ""; }
  // Whether the only output is the memory of the first input under another shape; such a node costs nothing.
  virtual bool is_view() const { return false; }
  // Whether all ranks must run the op together; a plan with such an op runs on a rank without samples too.
  virtual bool is_collective() const { return false; }
};

}  // namespace lockstep

// Computes an expression of the pointwise algebra, element by element, over values that broadcast as in NumPy: shapes
// are aligned at their last dimensions, and a dimension of 1 is repeated. A model applies one function at a time
// (ops/pointwise.h); gradients are expressions, and the plan joins neighbouring nodes.
#pragma once

#include <optional>

#include "lockstep/graph/graph.h"
#include "lockstep/ops/pointwise/function.h"

namespace lockstep {

class PointwiseOp : public Op {
 public:
  // With a `shape`, the result is broadcast to it too.
  explicit PointwiseOp(pointwise::Expression expression, std::optional<Shape> shape = {})
      : expression_(std::move(expression)), shape_(std::move(shape)) {}
  const pointwise::Expression& expression() const { return expression_; }
  // Whether the expression is the function of this name, applied to the inputs in their order.
  bool is(std::string_view function) const { return label_ == function; }
  std::string_view name() const override { return "pointwise"; }
  // All inputs have one floating type.
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
  std::string attributes() const override { return label_; }

 private:
  pointwise::Expression expression_;
  std::optional<Shape> shape_;
  std::string label_ = expression_.str();
};

// Returns the op of the node if the op is the function of this name, else null.
const PointwiseOp* as_pointwise(const Node& node, std::string_view function);

// Applies the expression to these values, without the inputs that the expression does not read.
Value pointwise_value(const pointwise::Expression& expression, std::span<const Value> inputs);

// Returns x summed over the dimensions that a broadcast from `shape` to the shape of x repeats, the gradient of a
// broadcast, and x broadcast to `shape`; x itself where it has the shape. They throw Error where shapes do not fit.
Value sum_to(Value x, const Shape& shape);
Value broadcast_to(Value x, const Shape& shape);
// Returns the shape to which these inputs broadcast. Throws Error that names op and module path where they do not fit.
Shape broadcast_shape(std::string_view op, std::string_view path, std::span<const Type> inputs);

}  // namespace lockstep

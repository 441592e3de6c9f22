// An expression of the pointwise algebra, element by element over values that broadcast as in NumPy: shapes are aligned
// at their last dimensions, and a dimension of 1 is repeated. A model applies one function at a time (ops/pointwise.h);
// gradients are expressions, and the plan joins neighbours.
#pragma once

#include <optional>

#include "lockstep/graph/graph.h"
#include "lockstep/ops/pointwise/function.h"

namespace lockstep {

class PointwiseOp : public Op {
 public:
  // With a shape, the result broadcasts to it too.
  explicit PointwiseOp(pointwise::Expression expression, std::optional<Shape> shape = {})
      : expression_(std::move(expression)), shape_(std::move(shape)) {}
  const pointwise::Expression& expression() const { return expression_; }
  // Whether this is the one function of that name, of its inputs in their order.
  bool is(std::string_view function) const { return label_ == function; }
  std::string_view name() const override { return "pointwise"; }
  // One floating type.
  std::vector<Type> infer(std::string_view place, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
  std::string attributes() const override { return label_; }

 private:
  pointwise::Expression expression_;
  std::optional<Shape> shape_;
  std::string label_ = expression_.str();
};

// The op of a node if it is the one function of that name, else null.
const PointwiseOp* as_pointwise(const Node& node, std::string_view function);

// The expression of these values: without inputs that it does not read.
Value pointwise_value(const pointwise::Expression& expression, std::span<const Value> inputs);

// x summed over the dimensions that broadcasting from `shape` to x's repeats: the gradient of broadcasting.
class SumToOp : public Op {
 public:
  explicit SumToOp(Shape shape) : shape_(std::move(shape)) {}
  const Shape& shape() const { return shape_; }
  std::string_view name() const override { return "sum_to"; }
  std::vector<Type> infer(std::string_view place, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;

 private:
  Shape shape_;
};

Value sum_to(Value x, const Shape& shape);
Value broadcast_to(Value x, const Shape& shape);
// The shape to which values of these broadcast; throws Error naming op and place where they do not.
Shape broadcast_shape(std::string_view op, std::string_view place, std::span<const Type> inputs);

}  // namespace lockstep

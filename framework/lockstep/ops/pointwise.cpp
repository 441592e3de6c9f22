#include "lockstep/ops/pointwise.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/cast.h"

namespace lockstep {

using pointwise::Expression;
using pointwise::Scalar;

Value apply_pointwise(std::string_view name, std::vector<Value> operands) {
  DType wide = DType::BF16;
  for (const Value v : operands) {
    if (v.dtype() != DType::BF16) wide = v.dtype();
  }
  Expression expression;
  std::vector<Scalar> inputs;
  for (Value& v : operands) {
    if (v.dtype() == DType::BF16) v = cast(v, wide);
    inputs.push_back(expression.input(static_cast<int>(inputs.size())));
  }
  expression.set_result(pointwise::apply(name, inputs));
  return apply_op(std::make_shared<PointwiseOp>(std::move(expression)), std::move(operands));
}

Value relu(Value x) { return apply_pointwise("relu", {x}); }
Value gate(Value y, Value d) { return apply_pointwise("gate", {y, d}); }
Value exp(Value x) { return apply_pointwise("exp", {x}); }
Value log(Value x) { return apply_pointwise("log", {x}); }
Value sqrt(Value x) { return apply_pointwise("sqrt", {x}); }
Value tanh(Value x) { return apply_pointwise("tanh", {x}); }
Value sigmoid(Value x) { return apply_pointwise("sigmoid", {x}); }
Value log_sigmoid(Value x) { return apply_pointwise("log_sigmoid", {x}); }
Value erf(Value x) { return apply_pointwise("erf", {x}); }
Value gelu(Value x) { return apply_pointwise("gelu", {x}); }
Value gelu_tanh(Value x) { return apply_pointwise("gelu_tanh", {x}); }
Value sin(Value x) { return apply_pointwise("sin", {x}); }
Value cos(Value x) { return apply_pointwise("cos", {x}); }
Value square(Value x) { return apply_pointwise("square", {x}); }
Value abs(Value x) { return apply_pointwise("abs", {x}); }
Value sign(Value x) { return apply_pointwise("sign", {x}); }
Value add(Value a, Value b) { return apply_pointwise("add", {a, b}); }
Value subtract(Value a, Value b) { return apply_pointwise("subtract", {a, b}); }
Value multiply(Value a, Value b) { return apply_pointwise("multiply", {a, b}); }
Value divide(Value a, Value b) { return apply_pointwise("divide", {a, b}); }
Value maximum(Value a, Value b) { return apply_pointwise("maximum", {a, b}); }
Value minimum(Value a, Value b) { return apply_pointwise("minimum", {a, b}); }
Value power(Value x, Value y) { return apply_pointwise("power", {x, y}); }

Value power(Value x, double y) {
  Expression expression;
  const Scalar a = expression.input(0);
  expression.set_result(pointwise::apply("power", {a, expression.constant(y)}));
  return pointwise_value(expression, std::span(&x, 1));
}

Value scale_shift(Value x, double scale, double shift) {
  Expression expression;
  Scalar y = expression.input(0) * scale;
  if (shift != 0) y = y + shift;
  if (y.term() == 0) return x;
  expression.set_result(y);
  return pointwise_value(expression, std::span(&x, 1));
}

Value operator/(Value x, double b) {
  Expression expression;
  expression.set_result(expression.input(0) / b);
  return pointwise_value(expression, std::span(&x, 1));
}

Value operator/(double a, Value x) {
  Expression expression;
  expression.set_result(a / expression.input(0));
  return pointwise_value(expression, std::span(&x, 1));
}

}  // namespace lockstep

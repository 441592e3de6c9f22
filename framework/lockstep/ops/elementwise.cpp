#include "lockstep/ops/elementwise.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/cast.h"

namespace lockstep {
namespace {

constexpr const char* kUnaryNames[] = {"relu", "exp", "log", "sqrt", "tanh", "sigmoid", "square", "abs"};
constexpr const char* kBinaryNames[] = {"add", "subtract", "multiply"};

void require_floating(std::string_view op, std::string_view place, const Type& type) {
  check(is_floating(type.dtype), op, "{}: input is {}, expected a floating type", place, type.str());
}

Value unary(Unary kind, Value x) { return apply_op(std::make_shared<UnaryOp>(kind), {x}); }

// bf16 beside f32 is read as f32, as in a cast at the wider operand.
Value binary(Binary kind, Value a, Value b) {
  const bool mixed = a.dtype() != b.dtype();
  if (mixed && a.dtype() == DType::BF16) a = cast(a, b.dtype());
  if (mixed && b.dtype() == DType::BF16) b = cast(b, a.dtype());
  return apply_op(std::make_shared<BinaryOp>(kind), {a, b});
}

}  // namespace

std::vector<Type> UnaryOp::infer(std::string_view place, std::span<const Type> inputs) const {
  require_floating(kUnaryNames[static_cast<int>(kind_)], place, inputs[0]);
  return {inputs[0]};
}

std::vector<Value> UnaryOp::gradient(const Request& r) const {
  const Value saved = UnaryGradientOp::saves_output(kind_) ? r.outputs[0] : r.inputs[0];
  return {apply_op(std::make_shared<UnaryGradientOp>(kind_), {saved, r.gradients[0]})};
}

std::string UnaryOp::attributes() const { return kUnaryNames[static_cast<int>(kind_)]; }

bool UnaryGradientOp::saves_output(Unary kind) {
  return kind != Unary::Log && kind != Unary::Square && kind != Unary::Abs;
}

std::vector<Type> UnaryGradientOp::infer(std::string_view, std::span<const Type> inputs) const { return {inputs[1]}; }

std::string UnaryGradientOp::attributes() const { return kUnaryNames[static_cast<int>(kind_)]; }

std::vector<Type> BinaryOp::infer(std::string_view place, std::span<const Type> inputs) const {
  const char* op = kBinaryNames[static_cast<int>(kind_)];
  require_floating(op, place, inputs[0]);
  check(inputs[0].dtype == inputs[1].dtype, op, "{}: operands are {} and {}: {}", place, inputs[0].str(),
        inputs[1].str(), kTypesDiffer);
  check(inputs[0].shape == inputs[1].shape, op, "{}: operands are {} and {}, expected equal shapes", place,
        inputs[0].str(), inputs[1].str());
  return {inputs[0]};
}

std::vector<Value> BinaryOp::gradient(const Request& r) const {
  const Value dy = r.gradients[0];
  const auto if_needed = [&](std::size_t i, auto make) { return r.needed[i] ? make() : Value(); };
  switch (kind_) {
    case Binary::Add:
      return {dy, dy};
    case Binary::Subtract:
      return {dy, if_needed(1, [&] { return scale_shift(dy, -1); })};
    case Binary::Multiply:
      return {if_needed(0, [&] { return multiply(dy, r.inputs[1]); }),
              if_needed(1, [&] { return multiply(dy, r.inputs[0]); })};
  }
  return {};
}

std::string BinaryOp::attributes() const { return kBinaryNames[static_cast<int>(kind_)]; }

std::vector<Type> ScaleShiftOp::infer(std::string_view place, std::span<const Type> inputs) const {
  require_floating(name(), place, inputs[0]);
  return {inputs[0]};
}

std::vector<Value> ScaleShiftOp::gradient(const Request& r) const { return {scale_shift(r.gradients[0], scale_)}; }

Value relu(Value x) { return unary(Unary::Relu, x); }
Value relu_gradient(Value y, Value dy) { return apply_op(std::make_shared<UnaryGradientOp>(Unary::Relu), {y, dy}); }
Value exp(Value x) { return unary(Unary::Exp, x); }
Value log(Value x) { return unary(Unary::Log, x); }
Value sqrt(Value x) { return unary(Unary::Sqrt, x); }
Value tanh(Value x) { return unary(Unary::Tanh, x); }
Value sigmoid(Value x) { return unary(Unary::Sigmoid, x); }
Value square(Value x) { return unary(Unary::Square, x); }
Value abs(Value x) { return unary(Unary::Abs, x); }
Value add(Value a, Value b) { return binary(Binary::Add, a, b); }
Value subtract(Value a, Value b) { return binary(Binary::Subtract, a, b); }
Value multiply(Value a, Value b) { return binary(Binary::Multiply, a, b); }
Value scale_shift(Value x, double scale, double shift) {
  return apply_op(std::make_shared<ScaleShiftOp>(scale, shift), {x});
}

}  // namespace lockstep

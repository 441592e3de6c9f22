// Arithmetic and activations, element by element over values of one shape, and their gradients as nodes.
#pragma once

#include "lockstep/graph/graph.h"

namespace lockstep {

enum class Unary : std::uint8_t { Relu, Exp, Log, Sqrt, Tanh, Sigmoid, Square, Abs };
enum class Binary : std::uint8_t { Add, Subtract, Multiply };

class UnaryOp : public Op {
 public:
  explicit UnaryOp(Unary kind) : kind_(kind) {}
  Unary kind() const { return kind_; }
  std::string_view name() const override { return "unary"; }
  std::vector<Type> infer(std::string_view place, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  std::string attributes() const override;

 private:
  Unary kind_;
};

// (saved, dy) -> dx for y = f(x); saved is y where f' can be told from it, so that x need not be kept, else x.
class UnaryGradientOp : public Op {
 public:
  explicit UnaryGradientOp(Unary kind) : kind_(kind) {}
  Unary kind() const { return kind_; }
  static bool saves_output(Unary kind);
  std::string_view name() const override { return "unary_gradient"; }
  std::vector<Type> infer(std::string_view place, std::span<const Type> inputs) const override;
  std::string attributes() const override;

 private:
  Unary kind_;
};

class BinaryOp : public Op {
 public:
  explicit BinaryOp(Binary kind) : kind_(kind) {}
  Binary kind() const { return kind_; }
  std::string_view name() const override { return "binary"; }
  std::vector<Type> infer(std::string_view place, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  std::string attributes() const override;

 private:
  Binary kind_;
};

// scale * x + shift, constants known when tracing.
class ScaleShiftOp : public Op {
 public:
  ScaleShiftOp(double scale, double shift) : scale_(scale), shift_(shift) {}
  double scale() const { return scale_; }
  double shift() const { return shift_; }
  std::string_view name() const override { return "scale_shift"; }
  std::vector<Type> infer(std::string_view place, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;

 private:
  double scale_, shift_;
};

Value relu(Value x);
Value relu_gradient(Value y, Value dy);  // dy where y > 0
Value exp(Value x);
Value log(Value x);
Value sqrt(Value x);
Value tanh(Value x);
Value sigmoid(Value x);
Value square(Value x);
Value abs(Value x);
Value add(Value a, Value b);
Value subtract(Value a, Value b);
Value multiply(Value a, Value b);
Value scale_shift(Value x, double scale, double shift = 0);

inline Value operator+(Value a, Value b) { return add(a, b); }
inline Value operator-(Value a, Value b) { return subtract(a, b); }
inline Value operator*(Value a, Value b) { return multiply(a, b); }
inline Value operator*(double a, Value x) { return scale_shift(x, a); }
inline Value operator*(Value x, double a) { return scale_shift(x, a); }
inline Value operator+(Value x, double b) { return scale_shift(x, 1, b); }
inline Value operator-(Value x, double b) { return scale_shift(x, 1, -b); }
inline Value operator-(Value x) { return scale_shift(x, -1); }

}  // namespace lockstep

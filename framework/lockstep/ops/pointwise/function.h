// The pointwise algebra: functions of one to three numbers, each a row of a table (table.cpp), and expressions made of
// them. A derivative is an expression too, so it can be differentiated again; the plan joins connected expressions, and
// one kernel works each out in blocks that stay in the first-level cache.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/ops/pointwise/code.h"

namespace lockstep::pointwise {

class Expression;

// A term of an expression under construction; formulas of rows are written on it. An empty one stands for zero where a
// gradient is returned.
class Scalar {
 public:
  Scalar() = default;
  Scalar(Expression& expression, int term) : expression_(&expression), term_(term) {}
  explicit operator bool() const { return expression_ != nullptr; }
  Expression& expression() const { return *expression_; }
  int term() const { return term_; }

 private:
  Expression* expression_ = nullptr;
  int term_ = -1;
};

// A row. What has a `code` is a primitive; what has none is its `value`.
struct Function {
  std::string_view name;
  int operands;
  // Its value at one point: the reference of the kernels' code, what constants fold to, and what tells whether zeros
  // stay zero. Null for a function that has a `value`.
  double (*at)(const double* x) = nullptr;
  Code code = Code::kCount;
  Scalar (*value)(const Scalar* x) = nullptr;
  // dy * (derivative by operand k), where y is the function's value: what reads y alone spares keeping x. Empty: zero.
  // Null: by the chain rule through `value`.
  Scalar (*gradient)(const Scalar* x, Scalar y, Scalar dy, int k) = nullptr;
};

std::span<const Function> functions();
const Function& function(std::string_view name);  // throws Error for a name that is no row's

struct Term {
  enum class Kind : std::uint8_t { Input, Constant, Apply };
  Kind kind;
  int input = -1;                      // Input
  double constant = 0;                 // Constant
  const Function* function = nullptr;  // Apply
  std::array<int, 3> operands{-1, -1, -1};
  bool operator==(const Term& other) const;
};

// Terms in an order in which each comes after its operands; equal terms are one. The result is one of them.
class Expression {
 public:
  Scalar input(int k);
  Scalar constant(double value);
  Scalar apply(const Function& function, std::span<const Scalar> operands);
  // The other's result, with these in place of its inputs.
  Scalar append(const Expression& other, std::span<const Scalar> inputs);
  void set_result(Scalar result) { result_ = result.term(); }

  const std::vector<Term>& terms() const { return terms_; }
  int result() const { return result_; }
  const Term& root() const { return terms_[static_cast<std::size_t>(result_)]; }
  int inputs() const;  // one more than the largest that occurs
  // The value at one point.
  double at(std::span<const double> inputs) const;
  // Whether the result is +0 wherever the inputs that `zero` names are +0, for any values of the other inputs.
  bool keeps_zero(const std::vector<bool>& zero) const;
  // "relu" of a single function, "multiply(a, add(b, 0.5))" of more.
  std::string str() const;

  // Without the terms that the result does not need; `kept` gets the inputs that remain, which are numbered anew.
  Expression compact(std::vector<int>& kept) const;
  // With functions that are made of others replaced by what they are made of.
  Expression primitive() const;

 private:
  Scalar find_or_add(const Term& term);
  std::string str(int term) const;

  std::vector<Term> terms_;
  int result_ = -1;
};

// dy * (derivative of f by its input k) as a term of the expression to which all of `inputs`, y (f's value, or empty)
// and dy belong; empty where it is zero.
Scalar differentiate(const Expression& f, std::span<const Scalar> inputs, Scalar y, Scalar dy, int k);

// Formulas. A number joins the expression of the other operand.
Scalar apply(std::string_view name, std::span<const Scalar> operands);
inline Scalar apply(std::string_view name, std::initializer_list<Scalar> operands) {
  return apply(name, std::span(operands.begin(), operands.size()));
}
inline Scalar operator+(Scalar a, Scalar b) { return apply("add", {a, b}); }
inline Scalar operator-(Scalar a, Scalar b) { return apply("subtract", {a, b}); }
inline Scalar operator*(Scalar a, Scalar b) { return apply("multiply", {a, b}); }
inline Scalar operator/(Scalar a, Scalar b) { return apply("divide", {a, b}); }
inline Scalar operator-(Scalar a) { return apply("negate", {a}); }
inline Scalar operator+(Scalar a, double b) { return a + a.expression().constant(b); }
inline Scalar operator-(Scalar a, double b) { return a - a.expression().constant(b); }
inline Scalar operator*(Scalar a, double b) { return a * a.expression().constant(b); }
inline Scalar operator/(Scalar a, double b) { return a / a.expression().constant(b); }
inline Scalar operator+(double a, Scalar b) { return b.expression().constant(a) + b; }
inline Scalar operator-(double a, Scalar b) { return b.expression().constant(a) - b; }
inline Scalar operator*(double a, Scalar b) { return b.expression().constant(a) * b; }
inline Scalar operator/(double a, Scalar b) { return b.expression().constant(a) / b; }

}  // namespace lockstep::pointwise

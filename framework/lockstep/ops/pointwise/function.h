// The pointwise algebra: functions of one to three numbers, each a row of a table (table.cpp), and expressions of them.
// A derivative is an expression too, so it can be differentiated again. The plan joins connected expressions; one
// kernel computes an expression in blocks that stay in the first-level cache. One thread builds an expression; a
// finished one is immutable.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/ops/pointwise/code.h"

namespace lockstep::pointwise {

class Expression;

// A term of an expression under construction; the formulas of rows are written with it. An empty Scalar is a gradient
// of zero.
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

// A row of the table. A function with a `code` is a primitive; one without is the formula `value`.
struct Function {
  std::string_view name;
  int operands;
  // The value at one point: the reference for the kernels' code; also for folding constants and for keeps_zero(). Null
  // for a function that has a `value`.
  double (*at)(const double* x) = nullptr;
  Code code = Code::kCount;
  Scalar (*value)(const Scalar* x) = nullptr;
  // Returns dy * (derivative by operand k), or an empty Scalar for zero; y is the function's value. A formula that
  // reads y and not x saves memory, as x need not be kept. Null: the chain rule through `value`.
  Scalar (*gradient)(const Scalar* x, Scalar y, Scalar dy, int k) = nullptr;
};

std::span<const Function> functions();
const Function& function(std::string_view name);  // throws Error for an unknown name

struct Term {
  enum class Kind : std::uint8_t { Input, Constant, Apply };
  Kind kind;
  int input = -1;                      // Input
  double constant = 0;                 // Constant
  const Function* function = nullptr;  // Apply
  std::array<int, 3> operands{-1, -1, -1};
  bool operator==(const Term& other) const;
};

// A list of terms, each after its operands; equal terms are stored once. One term is the result.
class Expression {
 public:
  Scalar input(int k);
  Scalar constant(double value);
  Scalar apply(const Function& function, std::span<const Scalar> operands);
  // Appends another expression with `inputs` in place of its inputs, and returns its result.
  Scalar append(const Expression& other, std::span<const Scalar> inputs);
  void set_result(Scalar result) { result_ = result.term(); }

  const std::vector<Term>& terms() const { return terms_; }
  int result() const { return result_; }
  const Term& root() const { return terms_[static_cast<std::size_t>(result_)]; }
  int inputs() const;  // one more than the largest input number in a term
  // The value at one point.
  double at(std::span<const double> inputs) const;
  // Whether the result is +0 wherever the inputs k with zero[k] are +0, whatever the other inputs are: tried at points,
  // which include infinity. A result that is NaN at one of them is not 0.
  bool keeps_zero(const std::vector<bool>& zero) const;
  // The expression as text: "relu" for a single function, else "multiply(a, add(b, 0.5))".
  std::string str() const;

  // Returns the terms that the result needs in the order of a walk that takes operands from the first to the last. C++
  // leaves it to the compiler which operand of a * b is added first, and sums of a derivative follow the order of
  // terms.
  Expression ordered() const;
  // The same, with inputs numbered anew: `kept` gets the old number of each remaining input.
  Expression compact(std::vector<int>& kept) const;
  // Returns the expression in primitives alone: each other function is replaced by its formula.
  Expression primitive() const;

 private:
  Scalar find_or_add(const Term& term);
  std::vector<std::size_t> walk() const;
  Expression ordered(std::span<const int> numbers) const;  // by old number of an input its new one
  std::string str(int term) const;

  std::vector<Term> terms_;
  int result_ = -1;
};

// Returns dy * (derivative of f by its input k), or an empty Scalar for zero, as a term of the expression to which all
// `inputs`, y (the value of f, or empty) and dy belong.
Scalar differentiate(const Expression& f, std::span<const Scalar> inputs, Scalar y, Scalar dy, int k);

// Operators for formulas. A number becomes a constant in the expression of the other operand.
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

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "lockstep/core/error.h"
#include "lockstep/ops/pointwise/function.h"

namespace lockstep::pointwise {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

bool is_applied(const Term& term) { return term.kind == Term::Kind::Apply; }

// The expression of a function that is a formula.
Expression value_of(const Function& f) {
  Expression expression;
  std::array<Scalar, 3> x;
  for (int k = 0; k < f.operands; ++k) x[index(k)] = expression.input(k);
  expression.set_result(f.value(x.data()));
  return expression.ordered();
}

std::vector<Scalar> operands_of(const Term& term, std::span<const Scalar> terms) {
  std::vector<Scalar> operands;
  for (int k = 0; k < term.function->operands; ++k) operands.push_back(terms[index(term.operands[index(k)])]);
  return operands;
}

}  // namespace

bool Term::operator==(const Term& other) const {
  return kind == other.kind && input == other.input && function == other.function && operands == other.operands &&
         std::bit_cast<std::uint64_t>(constant) == std::bit_cast<std::uint64_t>(other.constant);
}

Scalar Expression::find_or_add(const Term& term) {
  const auto found = std::ranges::find(terms_, term);
  const auto at = static_cast<int>(found - terms_.begin());
  if (found == terms_.end()) terms_.push_back(term);
  return {*this, at};
}

Scalar Expression::input(int k) { return find_or_add({.kind = Term::Kind::Input, .input = k}); }

Scalar Expression::constant(double value) { return find_or_add({.kind = Term::Kind::Constant, .constant = value}); }

Scalar Expression::apply(const Function& f, std::span<const Scalar> operands) {
  check(static_cast<int>(operands.size()) == f.operands, "pointwise", "{} takes {} operands, got {}", f.name,
        f.operands, operands.size());
  Term term{.kind = Term::Kind::Apply, .function = &f};
  std::array<double, 3> constants{};
  bool constant = f.at != nullptr;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    check(operands[k] && &operands[k].expression() == this, "pointwise",
          "{}: operand {} is empty or belongs to another expression", f.name, k);
    term.operands[k] = operands[k].term();
    const Term& operand = terms_[index(operands[k].term())];
    constant = constant && operand.kind == Term::Kind::Constant;
    constants[k] = operand.constant;
    // A product with 1 is the other operand, bit for bit.
    if (f.code == Code::Multiply && operand.kind == Term::Kind::Constant && operand.constant == 1)
      return operands[1 - k];
  }
  return constant ? this->constant(f.at(constants.data())) : find_or_add(term);
}

Scalar Expression::append(const Expression& other, std::span<const Scalar> inputs) {
  std::vector<Scalar> terms;
  for (const Term& term : other.terms_) {
    switch (term.kind) {
      case Term::Kind::Input:
        terms.push_back(inputs[index(term.input)]);
        break;
      case Term::Kind::Constant:
        terms.push_back(constant(term.constant));
        break;
      case Term::Kind::Apply:
        terms.push_back(apply(*term.function, operands_of(term, terms)));
        break;
    }
  }
  return terms[index(other.result_)];
}

int Expression::inputs() const {
  int count = 0;
  for (const Term& term : terms_) count = std::max(count, term.input + 1);
  return count;
}

double Expression::at(std::span<const double> inputs) const {
  std::vector<double> values;
  for (const Term& term : terms_) {
    if (term.kind == Term::Kind::Input) {
      values.push_back(inputs[index(term.input)]);
    } else if (term.kind == Term::Kind::Constant) {
      values.push_back(term.constant);
    } else {
      std::array<double, 3> x{};
      for (int k = 0; k < term.function->operands; ++k) x[index(k)] = values[index(term.operands[index(k)])];
      const Function& f = *term.function;
      values.push_back(f.at != nullptr ? f.at(x.data()) : value_of(f).at(x));
    }
  }
  return values[index(result_)];
}

// Points decide, as no rule over terms would keep as much: the other inputs are equal, then different from each other.
// At large and infinite ones 0 times a value may be NaN, which is not 0.
bool Expression::keeps_zero(const std::vector<bool>& zero) const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr std::array kOthers{1.0, -2.5, 0.0, 1e30, -1e30, kInfinity, -kInfinity};
  for (const std::size_t step : {0U, 1U, 2U}) {
    for (std::size_t first = 0; first < kOthers.size(); ++first) {
      std::vector<double> point(index(inputs()), 0.0);
      std::size_t other = first;
      for (std::size_t k = 0; k < point.size(); ++k) {
        if (zero[k]) continue;
        point[k] = kOthers[other % kOthers.size()];
        other += step;
      }
      if (const double value = at(point); !(value == 0) || std::signbit(value)) return false;
    }
  }
  return true;
}

std::string Expression::str(int term) const {
  const Term& t = terms_[index(term)];
  if (t.kind == Term::Kind::Input) return std::string(1, static_cast<char>('a' + t.input));
  if (t.kind == Term::Kind::Constant) return fmt::format("{}", t.constant);
  std::string text;
  for (int k = 0; k < t.function->operands; ++k) {
    if (k > 0) text += ", ";
    text += str(t.operands[index(k)]);
  }
  return fmt::format("{}({})", t.function->name, text);
}

std::string Expression::str() const {
  const Term& t = root();
  bool single = is_applied(t);
  for (int k = 0; single && k < t.function->operands; ++k) {
    const Term& operand = terms_[index(t.operands[index(k)])];
    single = operand.kind == Term::Kind::Input && operand.input == k;
  }
  return single ? std::string(t.function->name) : str(result_);
}

std::vector<std::size_t> Expression::walk() const {
  std::vector<std::size_t> order;
  std::vector<bool> seen(terms_.size(), false);
  const auto visit = [&](const auto& self, std::size_t t) -> void {
    if (seen[t]) return;
    seen[t] = true;
    for (int k = 0; is_applied(terms_[t]) && k < terms_[t].function->operands; ++k)
      self(self, index(terms_[t].operands[index(k)]));
    order.push_back(t);
  };
  visit(visit, index(result_));
  return order;
}

Expression Expression::ordered(std::span<const int> numbers) const {
  Expression result;
  std::vector<Scalar> now(terms_.size());
  for (const std::size_t t : walk()) {
    const Term& term = terms_[t];
    if (term.kind == Term::Kind::Input) {
      now[t] = result.input(numbers[index(term.input)]);
    } else {
      now[t] = is_applied(term) ? result.apply(*term.function, operands_of(term, now)) : result.constant(term.constant);
    }
  }
  result.set_result(now[index(result_)]);
  return result;
}

Expression Expression::ordered() const {
  std::vector<int> numbers(index(inputs()));
  std::iota(numbers.begin(), numbers.end(), 0);
  return ordered(numbers);
}

Expression Expression::compact(std::vector<int>& kept) const {
  kept.clear();
  for (const std::size_t t : walk()) {
    if (terms_[t].kind == Term::Kind::Input) kept.push_back(terms_[t].input);
  }
  std::ranges::sort(kept);
  std::vector<int> numbers(index(inputs()), -1);
  for (std::size_t k = 0; k < kept.size(); ++k) numbers[index(kept[k])] = static_cast<int>(k);
  return ordered(numbers);
}

Expression Expression::primitive() const {
  Expression result;
  std::vector<Scalar> now;
  for (const Term& term : terms_) {
    if (term.kind == Term::Kind::Input) {
      now.push_back(result.input(term.input));
    } else if (term.kind == Term::Kind::Constant) {
      now.push_back(result.constant(term.constant));
    } else if (term.function->value == nullptr) {
      now.push_back(result.apply(*term.function, operands_of(term, now)));
    } else {
      now.push_back(result.append(value_of(*term.function).primitive(), operands_of(term, now)));
    }
  }
  result.set_result(now[index(result_)]);
  return result;
}

Scalar apply(std::string_view name, std::span<const Scalar> operands) {
  return operands[0].expression().apply(function(name), operands);
}

Scalar differentiate(const Expression& f, std::span<const Scalar> inputs, Scalar y, Scalar dy, int k) {
  Expression& to = dy.expression();
  const std::vector<Term>& terms = f.terms();
  std::vector<Scalar> values, adjoints(terms.size());
  std::vector<bool> depends;
  for (const Term& term : terms) {
    bool d = term.kind == Term::Kind::Input && term.input == k;
    if (term.kind == Term::Kind::Input) {
      values.push_back(inputs[index(term.input)]);
    } else if (term.kind == Term::Kind::Constant) {
      values.push_back(to.constant(term.constant));
    } else {
      values.push_back(to.apply(*term.function, operands_of(term, values)));
      for (int j = 0; j < term.function->operands; ++j) d = d || depends[index(term.operands[index(j)])];
    }
    depends.push_back(d);
  }
  if (y) values[index(f.result())] = y;
  if (depends[index(f.result())]) adjoints[index(f.result())] = dy;
  for (std::size_t t = terms.size(); t-- > 0;) {
    if (!is_applied(terms[t]) || !adjoints[t]) continue;
    const Function& g = *terms[t].function;
    const std::vector<Scalar> x = operands_of(terms[t], values);
    for (int j = 0; j < g.operands; ++j) {
      const std::size_t operand = index(terms[t].operands[index(j)]);
      if (!depends[operand]) continue;
      const Scalar part = g.gradient != nullptr ? g.gradient(x.data(), values[t], adjoints[t], j)
                                                : differentiate(value_of(g), x, values[t], adjoints[t], j);
      if (part) adjoints[operand] = adjoints[operand] ? adjoints[operand] + part : part;
    }
  }
  for (std::size_t t = 0; t < terms.size(); ++t) {
    if (terms[t].kind == Term::Kind::Input && terms[t].input == k) return adjoints[t];
  }
  return {};
}

}  // namespace lockstep::pointwise

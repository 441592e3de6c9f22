#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "lockstep/core/math.h"
#include "lockstep/onnx/import/folding.h"

namespace lockstep::onnx {
namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

// The sizes of a shape behind as many of 1 as it has fewer dimensions than `rank`.
Numbers with_rank(const Shape& shape, std::size_t rank) {
  Numbers sizes(rank - shape.dims().size(), 1);
  sizes.insert(sizes.end(), shape.dims().begin(), shape.dims().end());
  return sizes;
}

// The shape of a result of two constants, along whose axes those of one element repeat.
Shape shape_of_both(const NodeReader& r, const Shape& a, const Shape& b) {
  const std::size_t rank = std::max(a.dims().size(), b.dims().size());
  Numbers sizes = with_rank(a, rank);
  const Numbers other = with_rank(b, rank);
  for (std::size_t axis = 0; axis < rank; ++axis) {
    r.require(sizes[axis] == other[axis] || sizes[axis] == 1 || other[axis] == 1,
              formatted("constants of shapes {} and {}, expected sizes that are the same, or 1", a.str(), b.str()));
    if (sizes[axis] == 1) sizes[axis] = other[axis];
  }
  Shape shape(sizes);
  r.require(shape.elements() <= kMostFolded,
            formatted("constants of shapes {} and {}, expected a result of at most {} elements", a.str(), b.str(),
                      kMostFolded));
  return shape;
}

// For each element of a result, the number of the element of an operand from which it is computed.
std::vector<std::size_t> repeated(const Shape& operand, const Shape& result) {
  const Numbers sizes = with_rank(operand, result.dims().size());
  std::vector<std::size_t> numbers{0};
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    const auto count = static_cast<std::size_t>(result[static_cast<int>(axis)]);
    if (count == 1) continue;
    const bool repeats = sizes[axis] == 1;
    std::vector<std::size_t> next;
    for (const std::size_t number : numbers) {
      for (std::size_t i = 0; i < count; ++i) next.push_back(repeats ? number : number * count + i);
    }
    numbers = std::move(next);
  }
  return numbers;
}

// Applies a function to each pair of elements.
template <class Whole, class Real>
void fold_pairs(const NodeReader& r, Whole whole, Real real) {
  const List a = list_of(r, 0), b = list_of(r, 1);
  List result{.shape = shape_of_both(r, a.shape, b.shape), .is_whole = a.is_whole && b.is_whole};
  const std::vector<std::size_t> of_a = repeated(a.shape, result.shape), of_b = repeated(b.shape, result.shape);
  for (std::size_t i = 0; i < of_a.size(); ++i) {
    if (result.is_whole) {
      result.wholes.push_back(whole(a.wholes[of_a[i]], b.wholes[of_b[i]]));
    } else {
      result.reals.push_back(real(a.real(of_a[i]), b.real(of_b[i])));
    }
  }
  r.set_constant(result.tensor());
}

template <class Binary>
void fold_with(const NodeReader& r, Binary binary) {
  fold_pairs(r, binary, binary);
}

// `overflows` stores its result for whole numbers, and returns whether 64 bits do not hold it.
template <class Overflows, class Real>
void fold_exactly(const NodeReader& r, Overflows overflows, Real real) {
  fold_pairs(
      r,
      [&](std::int64_t a, std::int64_t b) {
        std::int64_t result = 0;
        r.require(!overflows(a, b, &result), formatted("the result of {} and {} is no number of 64 bits", a, b));
        return result;
      },
      real);
}

void fold_div(const NodeReader& r) {
  fold_pairs(
      r,
      [&](std::int64_t a, std::int64_t b) {
        r.require(b != 0, "a whole number is divided by 0");
        r.require(b != -1 || a != kLeast, formatted("{} is divided by -1", a));
        return a / b;
      },
      std::divides<double>());
}

// The rest has the sign of the divisor, with `fmod` that of the dividend, which real numbers need.
void fold_mod(const NodeReader& r) {
  const bool of_dividend = r.whole_attribute("fmod", 0) != 0;
  fold_pairs(
      r,
      [&](std::int64_t a, std::int64_t b) {
        r.require(b != 0, "a whole number is divided by 0");
        const std::int64_t rest = b == -1 ? 0 : a % b;
        return !of_dividend && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
      },
      [&](double a, double b) {
        r.require(of_dividend, "fmod is 0 for real numbers, expected 1");
        return std::fmod(a, b);
      });
}

template <class Function>
void fold_function(const NodeReader& r, Function function) {
  List list = list_of(r, 0);
  if (list.is_whole) list.reals.assign(list.wholes.begin(), list.wholes.end());
  list.is_whole = false;
  for (double& value : list.reals) value = function(value);
  r.set_constant(list.tensor());
}

void fold_negate(const NodeReader& r) {
  List list = list_of(r, 0);
  for (std::int64_t& value : list.wholes) {
    r.require(value != kLeast, formatted("the negative of {} is no number of 64 bits", value));
    value = -value;
  }
  for (double& value : list.reals) value = -value;
  r.set_constant(list.tensor());
}

// 1 float32, 10 float16, 11 float64, 16 bfloat16; all others are whole.
bool is_floating_type(std::int64_t type) { return type == 1 || type == 10 || type == 11 || type == 16; }

void fold_cast(const NodeReader& r) {
  List list = list_of(r, 0);
  const bool whole = !is_floating_type(r.whole_attribute("to", 0));
  if (whole && !list.is_whole) {
    for (const double value : list.reals) {
      r.require(std::abs(value) < 0x1p63, formatted("{} as a whole number", value));
      list.wholes.push_back(static_cast<std::int64_t>(value));
    }
  } else if (!whole && list.is_whole) {
    list.reals.assign(list.wholes.begin(), list.wholes.end());
  }
  list.is_whole = whole;
  r.set_constant(list.tensor());
}

void fold_where(const NodeReader& r) {
  const List condition = list_of(r, 0), a = list_of(r, 1), b = list_of(r, 2);
  r.require(a.is_whole == b.is_whole, "two constants of different types, expected one type");
  List result{.shape = shape_of_both(r, shape_of_both(r, condition.shape, a.shape), b.shape), .is_whole = a.is_whole};
  const std::vector<std::size_t> of_condition = repeated(condition.shape, result.shape),
                                 of_a = repeated(a.shape, result.shape), of_b = repeated(b.shape, result.shape);
  for (std::size_t i = 0; i < of_condition.size(); ++i) {
    const bool holds = condition.real(of_condition[i]) != 0;
    const List& from = holds ? a : b;
    const std::size_t at = holds ? of_a[i] : of_b[i];
    if (result.is_whole) result.wholes.push_back(from.wholes[at]);
    if (!result.is_whole) result.reals.push_back(from.reals[at]);
  }
  r.set_constant(result.tensor());
}

void fold_range(const NodeReader& r) {
  const List start = list_of(r, 0), limit = list_of(r, 1), step = list_of(r, 2);
  const bool numbers = start.size() == 1 && limit.size() == 1 && step.size() == 1;
  r.require(numbers && start.is_whole && limit.is_whole && step.is_whole && step.wholes[0] != 0,
            "a range of lists, of floating numbers or with step 0, expected whole numbers");
  List result;
  bool over = false;
  for (std::int64_t i = start.wholes[0]; !over && (step.wholes[0] > 0 ? i < limit.wholes[0] : i > limit.wholes[0]);
       over = __builtin_add_overflow(i, step.wholes[0], &i)) {
    result.wholes.push_back(i);
    r.require(static_cast<std::int64_t>(result.size()) <= kMostFolded, "a range of more than a million numbers");
  }
  result.shape = Shape{static_cast<std::int64_t>(result.size())};
  r.set_constant(result.tensor());
}

constexpr Folding kArithmetic[] = {
    {"Add",
     [](const NodeReader& r) {
       fold_exactly(
           r, [](auto a, auto b, auto* y) { return __builtin_add_overflow(a, b, y); }, std::plus<>());
     }},
    {"Sub",
     [](const NodeReader& r) {
       fold_exactly(
           r, [](auto a, auto b, auto* y) { return __builtin_sub_overflow(a, b, y); }, std::minus<>());
     }},
    {"Mul",
     [](const NodeReader& r) {
       fold_exactly(
           r, [](auto a, auto b, auto* y) { return __builtin_mul_overflow(a, b, y); }, std::multiplies<>());
     }},
    {"Div", fold_div},
    {"Mod", fold_mod},
    {"Equal", [](const NodeReader& r) { fold_with(r, [](auto a, auto b) { return decltype(a)(a == b); }); }},
    {"Greater", [](const NodeReader& r) { fold_with(r, [](auto a, auto b) { return decltype(a)(a > b); }); }},
    {"Less", [](const NodeReader& r) { fold_with(r, [](auto a, auto b) { return decltype(a)(a < b); }); }},
    {"Max", [](const NodeReader& r) { fold_with(r, [](auto a, auto b) { return std::max(a, b); }); }},
    {"Min", [](const NodeReader& r) { fold_with(r, [](auto a, auto b) { return std::min(a, b); }); }},
    {"Pow",
     [](const NodeReader& r) {
       fold_with(r, [](auto a, auto b) {
         return static_cast<decltype(a)>(math::pow(static_cast<double>(a), static_cast<double>(b)));
       });
     }},
    {"Sqrt", [](const NodeReader& r) { fold_function(r, [](double x) { return std::sqrt(x); }); }},
    {"Floor", [](const NodeReader& r) { fold_function(r, [](double x) { return std::floor(x); }); }},
    {"Ceil", [](const NodeReader& r) { fold_function(r, [](double x) { return std::ceil(x); }); }},
    {"Reciprocal", [](const NodeReader& r) { fold_function(r, [](double x) { return 1 / x; }); }},
    {"Neg", fold_negate},
    {"Cast", fold_cast},
    {"Where", fold_where},
    {"Range", fold_range},
};

}  // namespace

std::span<const Folding> arithmetic_foldings() { return kArithmetic; }

}  // namespace lockstep::onnx

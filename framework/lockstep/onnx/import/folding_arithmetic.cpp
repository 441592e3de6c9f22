#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "lockstep/core/math.h"
#include "lockstep/onnx/import/folding.h"

namespace lockstep::onnx {
namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

// Applies a function to each pair of elements; one of the operands may have a single element.
template <class Whole, class Real>
void fold_pairs(const NodeReader& r, Whole whole, Real real) {
  const List a = list_of(r, 0), b = list_of(r, 1);
  r.require(a.size() == b.size() || a.size() == 1 || b.size() == 1,
            formatted("constants of shapes {} and {}, expected the same or one element", a.shape.str(), b.shape.str()));
  List result{.shape = a.size() >= b.size() && a.shape.rank() >= b.shape.rank() ? a.shape : b.shape,
              .is_whole = a.is_whole && b.is_whole};
  if (a.size() != b.size()) result.shape = a.size() == 1 ? b.shape : a.shape;
  const std::size_t size = a.size() == 1 ? b.size() : a.size();
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t ia = a.size() == 1 ? 0 : i, ib = b.size() == 1 ? 0 : i;
    if (result.is_whole) {
      result.wholes.push_back(whole(a.wholes[ia], b.wholes[ib]));
    } else {
      result.reals.push_back(real(a.real(ia), b.real(ib)));
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
  const std::size_t size = std::max({condition.size(), a.size(), b.size()});
  List result{.shape = condition.size() == size ? condition.shape
                       : a.size() == size       ? a.shape
                                                : b.shape,
              .is_whole = a.is_whole};
  for (std::size_t i = 0; i < size; ++i) {
    const auto at = [&](const List& list) {
      r.require(list.size() == size || list.size() == 1, "constants of different sizes");
      return list.size() == 1 ? 0 : i;
    };
    const List& from = condition.real(at(condition)) != 0 ? a : b;
    if (result.is_whole) result.wholes.push_back(from.wholes[at(from)]);
    if (!result.is_whole) result.reals.push_back(from.reals[at(from)]);
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

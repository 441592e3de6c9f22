// The arithmetic with which exporters compute sizes from shapes: "view(x.size(0), -1)" in a model becomes
// a chain of Shape, Gather, Unsqueeze and Concat.
#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>

#include "lockstep/core/math.h"
#include "lockstep/onnx/import/node_reader.h"

namespace lockstep::onnx {
namespace {

constexpr std::int64_t kMostElements = 1 << 20;  // of a constant that is computed

// A list of numbers, whole ones or f64. Sizes are computed with such lists; no other constants are.
struct List {
  Shape shape;
  bool is_whole = true;
  Numbers wholes = {};
  std::vector<double> reals = {};

  std::size_t size() const { return is_whole ? wholes.size() : reals.size(); }
  double real(std::size_t i) const { return is_whole ? static_cast<double>(wholes[i]) : reals[i]; }
  Tensor tensor() const {
    return is_whole ? Tensor::from<std::int64_t>(shape, wholes) : Tensor::from<double>(shape, reals);
  }
};

List list_of(const NodeReader& r, std::size_t i) {
  const Tensor& tensor = *r.constant(i);
  r.require(tensor.elements() <= kMostElements,
            formatted("a constant of {} elements takes part, expected at most {} where sizes are computed",
                      tensor.elements(), kMostElements));
  List list{.shape = tensor.shape(), .is_whole = !is_floating(tensor.dtype())};
  if (list.is_whole) {
    list.wholes = r.wholes(i, "a constant");
  } else if (tensor.dtype() == DType::F64) {
    list.reals.assign(tensor.data<double>().begin(), tensor.data<double>().end());
  } else {
    list.reals.assign(tensor.data<float>().begin(), tensor.data<float>().end());
  }
  return list;
}

// Applies a function to each pair of elements; one of the operands may have a single element.
template <class Whole, class Real>
void fold_pairs(const NodeReader& r, Whole whole, Real real) {
  const List a = list_of(r, 0), b = list_of(r, 1);
  r.require(a.size() == b.size() || a.size() == 1 || b.size() == 1,
            formatted("constants of shapes {} and {}, expected the same or one element", a.shape.str(), b.shape.str()));
  List result{.shape = a.size() >= b.size() && a.shape.rank() >= b.shape.rank() ? a.shape : b.shape,
              .is_whole = a.is_whole && b.is_whole};
  if (a.size() != b.size()) result.shape = a.size() > b.size() ? a.shape : b.shape;
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
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

void fold_div(const NodeReader& r) {
  fold_pairs(
      r,
      [&](std::int64_t a, std::int64_t b) {
        r.require(b != 0, "a whole number is divided by 0");
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
  for (std::int64_t& value : list.wholes) value = -value;
  for (double& value : list.reals) value = -value;
  r.set_constant(list.tensor());
}

// Keeps the chosen elements, in their order.
void keep(const NodeReader& r, List list, const std::vector<std::size_t>& chosen, Shape shape) {
  List result{.shape = std::move(shape), .is_whole = list.is_whole};
  for (const std::size_t i : chosen) {
    if (list.is_whole) result.wholes.push_back(list.wholes[i]);
    if (!list.is_whole) result.reals.push_back(list.reals[i]);
  }
  r.set_constant(result.tensor());
}

void require_list(const NodeReader& r, const List& list) {
  r.require(list.shape.rank() <= 1, formatted("a constant of shape {}, expected one dimension", list.shape.str()));
}

void fold_gather(const NodeReader& r) {
  const List list = list_of(r, 0);
  require_list(r, list);
  std::vector<std::size_t> chosen;
  for (std::int64_t index : r.wholes(1, "the index")) {
    const auto size = static_cast<std::int64_t>(list.size());
    r.require(index >= -size && index < size, formatted("index {} of {} elements", index, size));
    chosen.push_back(static_cast<std::size_t>(index < 0 ? index + size : index));
  }
  keep(r, list, chosen, r.shape(1));
}

// Calls `visit` with the place of each element of a value of this shape, in order.
template <class Visit>
void each_place(const Shape& shape, const Visit& visit) {
  Numbers place(static_cast<std::size_t>(shape.rank()));
  for (std::int64_t left = shape.elements(); left > 0; --left) {
    visit(place);
    for (std::size_t axis = place.size(); axis-- > 0;) {
      if (++place[axis] < shape[static_cast<int>(axis)]) break;
      place[axis] = 0;
    }
  }
}

std::size_t number_of(const Shape& shape, const Numbers& place) {
  std::int64_t number = 0;
  for (std::size_t axis = 0; axis < place.size(); ++axis) number = number * shape[static_cast<int>(axis)] + place[axis];
  return static_cast<std::size_t>(number);
}

void fold_slice(const NodeReader& r) {
  const List list = list_of(r, 0);
  std::vector<AxisRange> ranges = ranges_of(r, list.shape);
  Shape shape = list.shape;
  for (int axis = 0; axis < shape.rank(); ++axis) shape[axis] = ranges[static_cast<std::size_t>(axis)].length;
  std::vector<std::size_t> chosen;
  each_place(shape, [&](Numbers place) {
    for (std::size_t axis = 0; axis < place.size(); ++axis)
      place[axis] = ranges[axis].start + place[axis] * ranges[axis].step;
    chosen.push_back(number_of(list.shape, place));
  });
  keep(r, list, chosen, shape);
}

void fold_transpose(const NodeReader& r) {
  const List list = list_of(r, 0);
  const std::vector<int> order = order_of(r, list.shape.rank());
  Shape shape = list.shape;
  for (int axis = 0; axis < shape.rank(); ++axis) shape[axis] = list.shape[order[static_cast<std::size_t>(axis)]];
  std::vector<std::size_t> chosen;
  each_place(shape, [&](const Numbers& place) {
    Numbers from(place.size());
    for (std::size_t axis = 0; axis < place.size(); ++axis) from[static_cast<std::size_t>(order[axis])] = place[axis];
    chosen.push_back(number_of(list.shape, from));
  });
  keep(r, list, chosen, shape);
}

void fold_concat(const NodeReader& r) {
  List result{.is_whole = true};
  for (std::size_t i = 0; i < r.inputs(); ++i) result.is_whole = result.is_whole && list_of(r, i).is_whole;
  for (std::size_t i = 0; i < r.inputs(); ++i) {
    const List part = list_of(r, i);
    require_list(r, part);
    for (std::size_t k = 0; k < part.size(); ++k) {
      if (result.is_whole) result.wholes.push_back(part.wholes[k]);
      if (!result.is_whole) result.reals.push_back(part.real(k));
    }
  }
  result.shape = Shape{static_cast<std::int64_t>(result.size())};
  r.set_constant(result.tensor());
}

// One dimension, or none: all that a list of sizes is given or loses.
void fold_dimension(const NodeReader& r, bool one_dimension) {
  List list = list_of(r, 0);
  r.require(one_dimension || list.size() == 1, formatted("{} elements, expected one", list.size()));
  list.shape = one_dimension ? Shape{static_cast<std::int64_t>(list.size())} : Shape{};
  r.set_constant(list.tensor());
}

void fold_reshape(const NodeReader& r) {
  List list = list_of(r, 0);
  const Numbers sizes = resolved_sizes(r, list.shape, r.wholes(1, "the shape"));
  r.require(
      Shape(sizes).elements() == list.shape.elements(),
      formatted("a constant of shape {} becomes {}, expected as many elements", list.shape.str(), Shape(sizes).str()));
  list.shape = Shape(sizes);
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

// One number in all elements. Where its shape does not broadcast, as that of an LSTM's zeros that PyTorch has written
// for another number of samples, the sizes that are asked for count.
void fold_expand(const NodeReader& r) {
  const List list = list_of(r, 0);
  Numbers sizes = r.wholes(1, "the shape");
  const Shape& own = list.shape;
  for (int i = 1; i <= std::min(own.rank(), static_cast<int>(sizes.size())); ++i) {
    std::int64_t& size = sizes[sizes.size() - static_cast<std::size_t>(i)];
    if (size == 1) size = own[own.rank() - i];
  }
  const Shape shape(sizes);
  bool uniform = list.size() > 0;
  for (std::size_t i = 1; i < list.size(); ++i) uniform = uniform && list.real(i) == list.real(0);
  r.require(uniform && shape.elements() <= kMostElements,
            formatted("a constant of shape {} becomes {}, expected one number and at most {} elements", own.str(),
                      shape.str(), kMostElements));
  keep(r, list, std::vector<std::size_t>(static_cast<std::size_t>(shape.elements())), shape);
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
  r.require(start.is_whole && limit.is_whole && step.is_whole && step.wholes[0] != 0,
            "a range of floating numbers or with step 0, expected whole ones");
  List result;
  for (std::int64_t i = start.wholes[0]; step.wholes[0] > 0 ? i < limit.wholes[0] : i > limit.wholes[0];
       i += step.wholes[0]) {
    result.wholes.push_back(i);
    r.require(static_cast<std::int64_t>(result.size()) <= kMostElements, "a range of more than a million numbers");
  }
  result.shape = Shape{static_cast<std::int64_t>(result.size())};
  r.set_constant(result.tensor());
}

struct Folding {
  std::string_view op;
  void (*fold)(const NodeReader& reader);
};

constexpr Folding kFoldings[] = {
    {"Add", [](const NodeReader& r) { fold_with(r, std::plus<>()); }},
    {"Sub", [](const NodeReader& r) { fold_with(r, std::minus<>()); }},
    {"Mul", [](const NodeReader& r) { fold_with(r, std::multiplies<>()); }},
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
    {"Gather", fold_gather},
    {"Slice", fold_slice},
    {"Concat", fold_concat},
    {"Reshape", fold_reshape},
    {"Transpose", fold_transpose},
    {"Unsqueeze", [](const NodeReader& r) { fold_dimension(r, true); }},
    {"Squeeze", [](const NodeReader& r) { fold_dimension(r, false); }},
    {"Cast", fold_cast},
    {"Where", fold_where},
    {"Expand", fold_expand},
    {"Range", fold_range},
};

}  // namespace

bool fold(const NodeReader& reader) {
  if (reader.inputs() == 0) return false;
  for (std::size_t i = 0; i < reader.inputs(); ++i) {
    // A parameter is no constant: training changes it.
    if (reader.has(i) && (reader.constant(i) == nullptr || reader.parameter(i) != nullptr)) return false;
  }
  const auto found = std::ranges::find(kFoldings, std::string_view(reader.node().op), &Folding::op);
  if (found == std::end(kFoldings)) return false;
  found->fold(reader);
  return true;
}

}  // namespace lockstep::onnx

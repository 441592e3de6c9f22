#include <algorithm>

#include "lockstep/onnx/import/folding.h"

namespace lockstep::onnx {
namespace {

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

template <Shape (*shape_of)(const NodeReader&, const Shape&)>
void fold_dimensions(const NodeReader& r) {
  List list = list_of(r, 0);
  list.shape = shape_of(r, list.shape);
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
  r.require(uniform && shape.elements() <= kMostFolded,
            formatted("a constant of shape {} becomes {}, expected one number and at most {} elements", own.str(),
                      shape.str(), kMostFolded));
  keep(r, list, std::vector<std::size_t>(static_cast<std::size_t>(shape.elements())), shape);
}

constexpr Folding kArrangement[] = {
    {"Gather", fold_gather},
    {"Slice", fold_slice},
    {"Concat", fold_concat},
    {"Reshape", fold_reshape},
    {"Transpose", fold_transpose},
    {"Unsqueeze", fold_dimensions<unsqueezed>},
    {"Squeeze", fold_dimensions<squeezed>},
    {"Expand", fold_expand},
};

}  // namespace

std::span<const Folding> arrangement_foldings() { return kArrangement; }

}  // namespace lockstep::onnx

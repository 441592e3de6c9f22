#include "lockstep/ops/reduced_axes.h"

#include <algorithm>
#include <numeric>

#include "lockstep/core/error.h"
#include "lockstep/graph/graph.h"

namespace lockstep {
namespace {

std::string_view traced_path(const Value& x) {
  const std::string& path = x.graph().path();
  return path.empty() ? "(model)" : std::string_view(path);
}

int from_front(std::string_view op, const Value& x, int axis) {
  const int rank = x.shape().rank();
  check(axis >= -rank && axis < rank, op, "{}: axis is {}, expected {} to {} for an input {}", traced_path(x), axis,
        -rank, rank - 1, x.type().str());
  return axis < 0 ? axis + rank : axis;
}

}  // namespace

std::vector<int> Axes::of(std::string_view op, const Value& x) const {
  std::vector<int> axes(numbers_.empty() ? static_cast<std::size_t>(x.shape().rank()) : 0);
  std::iota(axes.begin(), axes.end(), 0);
  for (const int number : numbers_) axes.push_back(from_front(op, x, number));
  std::ranges::sort(axes);
  const auto twice = std::ranges::adjacent_find(axes);
  if (twice != axes.end())
    fail(op, "{}: axis {} is named twice, expected different axes of an input {}", traced_path(x), *twice,
         x.type().str());
  return axes;
}

Shape kept_shape(const Shape& shape, const std::vector<int>& axes) {
  Shape kept = shape;
  for (const int axis : axes) kept[axis] = 1;
  return kept;
}

Shape reduced_shape(const Shape& shape, const std::vector<int>& axes) {
  std::vector<std::int64_t> dims;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!std::ranges::binary_search(axes, i)) dims.push_back(shape[i]);
  }
  return Shape(std::move(dims));
}

}  // namespace lockstep

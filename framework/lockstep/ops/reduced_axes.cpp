#include "lockstep/ops/reduced_axes.h"

#include <algorithm>
#include <numeric>

#include "lockstep/ops/shape_axes.h"

namespace lockstep {

std::vector<int> Axes::of(std::string_view op, const Value& x) const {
  std::vector<int> found = axes::of(op, x, numbers_);
  if (found.empty()) {
    found.resize(static_cast<std::size_t>(x.shape().rank()));
    std::iota(found.begin(), found.end(), 0);
  }
  std::ranges::sort(found);
  return found;
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

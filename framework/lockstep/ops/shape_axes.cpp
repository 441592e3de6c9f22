#include "lockstep/ops/shape_axes.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/graph/graph.h"
#include "lockstep/graph/module_path.h"

namespace lockstep::axes {

std::string path(Value x) { return path_or_model(x.graph().path()); }

int of(std::string_view op, Value x, int axis) {
  const int rank = x.shape().rank();
  check(axis >= -rank && axis < rank, op, "{}: axis is {}, expected {} to {} for an input {}", path(x), axis, -rank,
        rank - 1, x.type().str());
  return axis < 0 ? axis + rank : axis;
}

std::vector<int> of(std::string_view op, Value x, const std::vector<int>& some) {
  std::vector<int> result;
  for (const int axis : some) {
    const int a = of(op, x, axis);
    check(std::ranges::find(result, a) == result.end(), op,
          "{}: axis {} is named twice, expected different axes of an input {}", path(x), a, x.type().str());
    result.push_back(a);
  }
  return result;
}

int of_new(std::string_view op, Value x, int axis) {
  const int rank = x.shape().rank();
  check(axis >= -rank - 1 && axis <= rank, op, "{}: new axis {} beside those of {}, expected {} to {}", path(x), axis,
        x.type().str(), -rank - 1, rank);
  return axis < 0 ? axis + rank + 1 : axis;
}

std::int64_t outer(const Shape& shape, int axis) {
  std::int64_t n = 1;
  for (int d = 0; d < axis; ++d) n *= shape[d];
  return n;
}

std::int64_t inner(const Shape& shape, int axis) {
  std::int64_t n = 1;
  for (int d = axis + 1; d < shape.rank(); ++d) n *= shape[d];
  return n;
}

Shape replaced(const Shape& shape, int axis, const std::vector<std::int64_t>& by) {
  std::vector<std::int64_t> dims = shape.dims();
  const auto at = dims.begin() + axis;
  dims.insert(dims.erase(at), by.begin(), by.end());
  return Shape(std::move(dims));
}

std::string text(const std::vector<std::int64_t>& numbers) {
  std::string all;
  for (const std::int64_t n : numbers) all += (all.empty() ? "" : ", ") + std::to_string(n);
  return all;
}

}  // namespace lockstep::axes

#include "lockstep/ops/concat.h"

#include <algorithm>
#include <numeric>

#include "lockstep/core/error.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/shape_axes.h"
#include "lockstep/ops/slice.h"

namespace lockstep {
namespace {

// `size` cut into parts of `each`, the last one smaller.
std::vector<std::int64_t> even_parts(std::int64_t size, std::int64_t each) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t at = 0; at < size; at += each) sizes.push_back(std::min(each, size - at));
  if (sizes.empty()) sizes.push_back(0);
  return sizes;
}

}  // namespace

std::vector<Type> ConcatOp::infer(std::string_view path, std::span<const Type> inputs) const {
  check(!inputs.empty() && axis_ < inputs[0].shape.rank(), name(), "{}: {} values, the first without axis {}", path,
        inputs.size(), axis_);
  std::int64_t size = 0;
  for (const Type& t : inputs) {
    const bool fits = t.dtype == inputs[0].dtype && t.shape.rank() == inputs[0].shape.rank() &&
                      axes::replaced(t.shape, axis_, {}) == axes::replaced(inputs[0].shape, axis_, {});
    check(fits, name(), "{}: values are {} and {}, expected one type, and shapes that differ along axis {} alone", path,
          inputs[0].str(), t.str(), axis_);
    size += t.shape[axis_];
  }
  return {{axes::replaced(inputs[0].shape, axis_, {size}), inputs[0].dtype}};
}

// A single part is a slice; several parts cost one pass over dy.
std::vector<Value> ConcatOp::gradient(const Request& r) const {
  std::vector<Value> result(r.inputs.size());
  std::vector<std::int64_t> sizes;
  for (const Value v : r.inputs) sizes.push_back(v.shape()[axis_]);
  if (std::ranges::count(r.needed, true) > 1) return split(r.gradients[0], sizes, axis_);
  std::int64_t at = 0;
  for (std::size_t k = 0; k < sizes.size(); at += sizes[k++]) {
    if (r.needed[k]) result[k] = slice(r.gradients[0], axis_, at, sizes[k]);
  }
  return result;
}

std::vector<Type> SplitOp::infer(std::string_view path, std::span<const Type> inputs) const {
  check(axis_ < inputs[0].shape.rank(), name(), "{}: input is {}, which has no axis {}", path, inputs[0].str(), axis_);
  const std::int64_t total = std::accumulate(sizes_.begin(), sizes_.end(), std::int64_t{0});
  check(total == inputs[0].shape[axis_] && !sizes_.empty() && std::ranges::min(sizes_) >= 0, name(),
        "{}: parts of ({}) elements of axis {} of {}, expected sizes that add up to {}", path, axes::text(sizes_),
        axis_, inputs[0].str(), inputs[0].shape[axis_]);
  std::vector<Type> outputs;
  for (const std::int64_t size : sizes_)
    outputs.push_back({axes::replaced(inputs[0].shape, axis_, {size}), inputs[0].dtype});
  return outputs;
}

// A part on which nothing depends has the gradient 0.
std::vector<Value> SplitOp::gradient(const Request& r) const {
  const Shape& shape = r.inputs[0].shape();
  std::vector<Value> parts;
  std::vector<AxisRange> only;  // the place of the last part with a gradient
  std::int64_t at = 0, count = 0;
  Value last;
  for (std::size_t k = 0; k < r.outputs.size(); at += sizes_[k++]) {
    if (!r.gradients[k]) continue;
    last = r.gradients[k];
    ++count;
    only.clear();
    for (int d = 0; d < shape.rank(); ++d) only.push_back({.start = 0, .length = shape[d]});
    only[static_cast<std::size_t>(axis_)] = {.start = at, .length = sizes_[k]};
  }
  if (count == 1) return {place(last, shape, std::move(only))};
  for (std::size_t k = 0; k < r.outputs.size(); ++k)
    parts.push_back(r.gradients[k] ? r.gradients[k] : fill(last.graph(), r.outputs[k].type(), 0));
  return {concat(parts, axis_)};
}

double SplitOp::flops(std::span<const Type> inputs, std::span<const Type>) const {
  return static_cast<double>(inputs[0].shape.elements());
}

std::string SplitOp::attributes() const { return axes::text(sizes_) + " of axis " + std::to_string(axis_); }

Value concat(const std::vector<Value>& values, int axis) {
  check(!values.empty(), "concat", "no values, expected at least one");
  axis = axes::of("concat", values[0], axis);
  return values.size() == 1 ? values[0] : apply_op(std::make_shared<ConcatOp>(axis), values);
}

Value stack(const std::vector<Value>& values, int axis) {
  check(!values.empty(), "stack", "no values, expected at least one");
  axis = axes::of_new("stack", values[0], axis);
  std::vector<Value> wider;
  for (const Value v : values) {
    check(v.shape() == values[0].shape(), "stack", "{}: values are {} and {}, expected one shape", axes::path(v),
          values[0].type().str(), v.type().str());
    wider.push_back(unsqueeze(v, axis));
  }
  return concat(wider, axis);
}

std::vector<Value> split(Value x, const std::vector<std::int64_t>& sizes, int axis) {
  axis = axes::of("split", x, axis);
  if (sizes.size() == 1 && sizes[0] == x.shape()[axis]) return {x};
  return x.graph().apply(std::make_shared<SplitOp>(axis, sizes), {x});
}

std::vector<Value> split(Value x, std::int64_t size, int axis) {
  axis = axes::of("split", x, axis);
  check(size > 0, "split", "{}: parts of {} elements along axis {} of {}, expected at least 1", axes::path(x), size,
        axis, x.type().str());
  return split(x, even_parts(x.shape()[axis], size), axis);
}

std::vector<Value> chunk(Value x, std::int64_t parts, int axis) {
  axis = axes::of("chunk", x, axis);
  check(parts > 0, "chunk", "{}: {} parts of axis {} of {}, expected at least 1", axes::path(x), parts, axis,
        x.type().str());
  const std::int64_t size = x.shape()[axis];
  return split(x, even_parts(size, std::max<std::int64_t>((size + parts - 1) / parts, 1)), axis);
}

}  // namespace lockstep

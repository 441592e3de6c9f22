#include "lockstep/ops/slice.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/shape_axes.h"

namespace lockstep {
namespace {

AxisRange whole_axis(const Shape& shape, int axis) { return {.start = 0, .length = shape[axis]}; }

std::string ranges_text(const std::vector<AxisRange>& ranges) {
  std::string text;
  for (const AxisRange& r : ranges)
    text += (text.empty() ? "" : ", ") + formatted("{} from {} by {}", r.length, r.start, r.step);
  return text;
}

// Whether the ranges lie within `shape`, the larger one of both values.
void check_ranges(std::string_view op, std::string_view path, const Type& within,
                  const std::vector<AxisRange>& ranges) {
  check(static_cast<int>(ranges.size()) == within.shape.rank(), op, "{}: {} ranges for {}, expected one per axis", path,
        ranges.size(), within.str());
  for (int d = 0; d < within.shape.rank(); ++d) {
    const AxisRange& r = ranges[static_cast<std::size_t>(d)];
    check(r.length >= 0 && r.step != 0, op, "{}: axis {} of {}: {} elements with step {}, expected a step other than 0",
          path, d, within.str(), r.length, r.step);
    if (r.length == 0) continue;
    const std::int64_t last = r.start + (r.length - 1) * r.step, size = within.shape[d];
    check(r.start >= 0 && r.start < size && last >= 0 && last < size, op,
          "{}: axis {} of {}: elements {} to {} with step {}, expected elements from 0 to {}", path, d, within.str(),
          r.start, last, r.step, size - 1);
  }
}

}  // namespace

std::vector<Type> SliceOp::infer(std::string_view path, std::span<const Type> inputs) const {
  check_ranges(name(), path, inputs[0], ranges_);
  std::vector<std::int64_t> dims;
  for (const AxisRange& r : ranges_) dims.push_back(r.length);
  return {{Shape(std::move(dims)), inputs[0].dtype}};
}

std::vector<Value> SliceOp::gradient(const Request& r) const {
  return {place(r.gradients[0], r.inputs[0].shape(), ranges_)};
}

std::string SliceOp::attributes() const { return ranges_text(ranges_); }

std::vector<Type> PlaceOp::infer(std::string_view path, std::span<const Type> inputs) const {
  check_ranges(name(), path, {shape_, inputs[0].dtype}, ranges_);
  std::vector<std::int64_t> dims;
  for (const AxisRange& r : ranges_) dims.push_back(r.length);
  check(inputs[0].shape == Shape(dims), name(), "{}: input is {}, expected ({}), the lengths of the ranges", path,
        inputs[0].str(), axes::text(dims));
  return {{shape_, inputs[0].dtype}};
}

std::vector<Value> PlaceOp::gradient(const Request& r) const { return {slice(r.gradients[0], ranges_)}; }

std::string PlaceOp::attributes() const {
  return ranges_text(ranges_) + formatted(" in {} of {}", shape_.str(), value_);
}

std::vector<Type> RollOp::infer(std::string_view path, std::span<const Type> inputs) const {
  check(static_cast<int>(shifts_.size()) == inputs[0].shape.rank(), name(),
        "{}: {} shifts for {}, expected one per axis", path, shifts_.size(), inputs[0].str());
  return {inputs[0]};
}

std::vector<Value> RollOp::gradient(const Request& r) const {
  std::vector<std::int64_t> back;
  for (const std::int64_t shift : shifts_) back.push_back(-shift);
  return {apply_op(std::make_shared<RollOp>(std::move(back)), {r.gradients[0]})};
}

std::string RollOp::attributes() const { return axes::text(shifts_); }

Value slice(Value x, std::vector<AxisRange> ranges) {
  bool whole = true;
  for (int d = 0; d < x.shape().rank(); ++d) {
    if (static_cast<std::size_t>(d) == ranges.size()) ranges.push_back(whole_axis(x.shape(), d));
    whole = whole && ranges[static_cast<std::size_t>(d)] == whole_axis(x.shape(), d);
  }
  if (whole && static_cast<int>(ranges.size()) == x.shape().rank()) return x;
  return apply_op(std::make_shared<SliceOp>(std::move(ranges)), {x});
}

Value slice(Value x, int axis, std::int64_t start, std::int64_t length, std::int64_t step) {
  axis = axes::of("slice", x, axis);
  std::vector<AxisRange> ranges;
  for (int d = 0; d < axis; ++d) ranges.push_back(whole_axis(x.shape(), d));
  ranges.push_back({.start = start, .length = length, .step = step});
  return slice(x, std::move(ranges));
}

Value select(Value x, int axis, std::int64_t index) {
  axis = axes::of("slice", x, axis);
  const Value part = slice(x, axis, index < 0 ? index + x.shape()[axis] : index, 1);
  return reshape(part, axes::replaced(x.shape(), axis, {}));
}

Value place(Value x, Shape shape, std::vector<AxisRange> ranges, double value) {
  return apply_op(std::make_shared<PlaceOp>(std::move(shape), std::move(ranges), value), {x});
}

Value flip(Value x, const std::vector<int>& axes) {
  std::vector<AxisRange> ranges;
  for (int d = 0; d < x.shape().rank(); ++d) ranges.push_back(whole_axis(x.shape(), d));
  for (const int axis : axes::of("flip", x, axes)) {
    if (const std::int64_t n = x.shape()[axis]; n > 1)
      ranges[static_cast<std::size_t>(axis)] = {.start = n - 1, .length = n, .step = -1};
  }
  return slice(x, std::move(ranges));
}

Value roll(Value x, const std::vector<std::int64_t>& shifts, const std::vector<int>& axes) {
  check(shifts.size() == axes.size(), "roll", "{}: {} shifts for {} axes, expected one per axis", axes::path(x),
        shifts.size(), axes.size());
  std::vector<std::int64_t> by(static_cast<std::size_t>(x.shape().rank()), 0);
  const std::vector<int> along = axes::of("roll", x, axes);
  for (std::size_t k = 0; k < along.size(); ++k) by[static_cast<std::size_t>(along[k])] = shifts[k];
  return apply_op(std::make_shared<RollOp>(std::move(by)), {x});
}

}  // namespace lockstep

// Shapes, parts along axes, and joins.
#include <algorithm>
#include <limits>
#include <numeric>

#include "lockstep/onnx/import/node_reader.h"
#include "lockstep/ops/concat.h"
#include "lockstep/ops/permute.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/slice.h"

namespace lockstep::onnx {
namespace {

std::int64_t product_of(std::span<const std::int64_t> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), std::int64_t{1}, std::multiplies<>());
}

// The elements start, start + step, ... before `end`, where both may count from the end, or lie outside.
AxisRange range_of(std::int64_t start, std::int64_t end, std::int64_t step, std::int64_t size) {
  const auto from_front = [&](std::int64_t at) { return at < 0 ? at + size : at; };
  if (step > 0) {
    const std::int64_t begin = std::clamp<std::int64_t>(from_front(start), 0, size);
    const std::int64_t stop = std::clamp<std::int64_t>(from_front(end), 0, size);
    return {begin, stop > begin ? (stop - begin + step - 1) / step : 0, step};
  }
  const std::int64_t begin = std::clamp<std::int64_t>(from_front(start), -1, size - 1);
  const std::int64_t stop = end < -size ? -1 : std::clamp<std::int64_t>(from_front(end), -1, size - 1);
  return {begin, begin > stop ? (begin - stop - step - 1) / -step : 0, step};
}

struct Rebatched {
  Numbers sizes;
  std::int64_t in_front = 1;  // see Operand
};

// The sizes of a result of which the file knows those for its own number of samples, `before`: x has more or fewer
// samples along one axis, and so has the axis of the result that has the same elements.
Rebatched rebatched(const NodeReader& r, const Shape& x, const Shape& x_before, Numbers before) {
  int axis = 0;
  while (axis < x.rank() && x[axis] == x_before[axis]) ++axis;
  if (axis == x.rank()) return {before};
  const std::int64_t in_front = product_of(std::span(x.dims()).first(static_cast<std::size_t>(axis))) * r.in_front(0);
  const Tracing& tracing = r.tracing();
  std::int64_t so_far = 1;
  for (std::int64_t& size : before) {
    if (so_far == 0 || in_front == 0) break;
    const std::int64_t inside = in_front / so_far;  // elements of this axis in front of the samples
    if (in_front % so_far == 0 && inside <= size && size % (inside * tracing.batch_before) == 0) {
      size = size / tracing.batch_before * tracing.batch;
      return {before, inside};
    }
    so_far *= size;
  }
  r.refuse(
      formatted("the file is for {} samples, and {} of them are given: a value of shape {} becomes {} there, in "
                "which the samples have no axis",
                tracing.batch_before, tracing.batch, x_before.str(), Shape(before).str()));
}

void read_reshape(const NodeReader& r) {
  const Value x = r.value(0);
  const Numbers given = r.wholes(1, "the shape");
  const Operand* const x_before = r.before(0);
  // Sizes that are the same for another number of samples are those of the file, and no result of a Shape node.
  const bool fixed =
      x_before != nullptr && x_before->value && std::ranges::equal(r.before(1)->constant->data<std::int64_t>(), given);
  const Rebatched result =
      fixed ? rebatched(r, x.shape(), x_before->value.shape(), resolved_sizes(r, x_before->value.shape(), given))
            : Rebatched{resolved_sizes(r, x.shape(), given)};
  r.require(product_of(result.sizes) == x.shape().elements(),
            formatted("a value of shape {} becomes {}, expected as many elements", x.shape().str(),
                      Shape(result.sizes).str()));
  r.set(reshape(x, Shape(result.sizes)), 0, result.in_front);
}

void read_flatten(const NodeReader& r) {
  const Value x = r.value(0);
  // All axes may be in front of the place, so it may be the rank; one that counts from the end counts the axes alone.
  const std::int64_t given = r.whole_attribute("axis", 1);
  const int axis = axis_of(r, given, x.shape().rank() + (given < 0 ? 0 : 1));
  std::int64_t before = 1;
  for (int i = 0; i < axis; ++i) before *= x.shape()[i];
  r.set(reshape(x, Shape{before, before == 0 ? 0 : x.shape().elements() / before}));
}

void read_transpose(const NodeReader& r) {
  const Value x = r.value(0);
  r.set(permute(x, order_of(r, x.shape().rank())));
}

void read_squeeze(const NodeReader& r) {
  const Value x = r.value(0);
  r.set(reshape(x, squeezed(r, x.shape())));
}

void read_unsqueeze(const NodeReader& r) {
  const Value x = r.value(0);
  r.set(reshape(x, unsqueezed(r, x.shape())));
}

void read_concat(const NodeReader& r) {
  r.require(r.inputs() > 0, "there is nothing to join, expected an input at least");
  std::vector<Value> parts;
  for (std::size_t i = 0; i < r.inputs(); ++i) parts.push_back(r.value(i));
  r.set(concat(parts, axis_of(r, r.whole_attribute("axis", 0), parts.front().shape().rank())));
}

void read_split(const NodeReader& r) {
  const Value x = r.value(0);
  const int axis = axis_of(r, r.whole_attribute("axis", 0), x.shape().rank());
  Numbers sizes = r.wholes_of(1, "split");
  const auto count = static_cast<std::int64_t>(r.node().outputs.size());
  if (sizes.empty()) {  // as equal as can be, the last one smaller
    const std::int64_t size = x.shape()[axis], each = (size + count - 1) / count;
    for (std::int64_t i = 0; i < count; ++i) sizes.push_back(std::clamp<std::int64_t>(size - i * each, 0, each));
  }
  r.require(static_cast<std::int64_t>(sizes.size()) == count,
            formatted("{} sizes for {} outputs", sizes.size(), count));
  const std::vector<Value> parts = split(x, sizes, axis);
  for (std::size_t i = 0; i < parts.size(); ++i) r.set(parts[i], i);
}

void read_slice(const NodeReader& r) {
  const Value x = r.value(0);
  std::vector<AxisRange> ranges = ranges_of(r, x.shape());
  if (r.before(0) != nullptr && r.before(0)->value) {
    // All samples of the file are all samples here, also where the file has their number.
    const Shape shape = r.before(0)->value.shape();
    const std::vector<AxisRange> before = ranges_of(r, shape);
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const auto i = static_cast<std::size_t>(axis);
      if (shape[axis] != x.shape()[axis] && before[i] == AxisRange{0, shape[axis], 1})
        ranges[i] = {0, x.shape()[axis], 1};
    }
  }
  r.set(slice(x, ranges));
}

}  // namespace

Numbers resolved_sizes(const NodeReader& r, const Shape& x, Numbers sizes) {
  const bool keeps_zeros = r.whole_attribute("allowzero", 0) != 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0 && !keeps_zeros) sizes[i] = x[static_cast<int>(i)];
  }
  const auto open = std::ranges::count(sizes, -1);
  r.require(open <= 1, "the shape has two sizes of -1, expected one");
  if (open == 1) {
    const std::int64_t others = -product_of(sizes);
    r.require(others > 0 && x.elements() % others == 0,
              formatted("{} elements do not divide into {}", x.elements(), Shape(sizes).str()));
    *std::ranges::find(sizes, -1) = x.elements() / others;
  }
  return sizes;
}

Shape squeezed(const NodeReader& r, const Shape& x) {
  std::vector<bool> gone(static_cast<std::size_t>(x.rank()));
  const Numbers axes = r.wholes_of(1, "axes");
  for (const std::int64_t axis : axes) gone[static_cast<std::size_t>(axis_of(r, axis, x.rank()))] = true;
  Numbers sizes;
  for (int i = 0; i < x.rank(); ++i) {
    const bool goes = axes.empty() ? x[i] == 1 : gone[static_cast<std::size_t>(i)];
    r.require(!goes || x[i] == 1, formatted("axis {} of {} has more than one element", i, x.str()));
    if (!goes) sizes.push_back(x[i]);
  }
  return Shape(sizes);
}

Shape unsqueezed(const NodeReader& r, const Shape& x) {
  Numbers axes = r.wholes_of(1, "axes");
  const int rank = x.rank() + static_cast<int>(axes.size());
  for (std::int64_t& axis : axes) axis = axis_of(r, axis, rank);
  std::ranges::sort(axes);
  r.require(std::ranges::adjacent_find(axes) == axes.end(), "an axis is named twice");
  Numbers sizes = x.dims();
  for (const std::int64_t axis : axes) sizes.insert(sizes.begin() + axis, 1);
  return Shape(sizes);
}

std::vector<int> order_of(const NodeReader& r, int rank) {
  const Numbers order = r.wholes_attribute("perm");
  std::vector<int> axes;
  for (int i = rank; order.empty() && i-- > 0;) axes.push_back(i);
  for (const std::int64_t axis : order) axes.push_back(axis_of(r, axis, rank));
  r.require(static_cast<int>(axes.size()) == rank, formatted("perm has {} axes, expected {}", axes.size(), rank));
  return axes;
}

std::vector<AxisRange> ranges_of(const NodeReader& r, const Shape& x) {
  const Numbers starts = r.wholes_of(1, "starts"), ends = r.wholes_of(2, "ends"), steps = r.wholes_of(4, "steps");
  Numbers axes = r.wholes_of(3, "axes");
  for (std::size_t i = axes.size(); i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  r.require(
      starts.size() == ends.size() && axes.size() == starts.size() && (steps.empty() || steps.size() == starts.size()),
      "starts, ends, axes and steps are not as many");
  std::vector<AxisRange> ranges;
  for (const std::int64_t size : x.dims()) ranges.push_back({0, size, 1});
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const int axis = axis_of(r, axes[i], x.rank());
    const std::int64_t step = steps.empty() ? 1 : steps[i];
    r.require(step != 0, "a step of 0");
    ranges[static_cast<std::size_t>(axis)] = range_of(starts[i], ends[i], step, x[axis]);
  }
  return ranges;
}

std::span<const Reading> shape_readings() {
  static const std::vector<Reading> readings{
      {"Reshape", read_reshape, {"allowzero"}},
      {"Flatten", read_flatten, {"axis"}},
      {"Transpose", read_transpose, {"perm"}},
      {"Squeeze", read_squeeze, {"axes"}},
      {"Unsqueeze", read_unsqueeze, {"axes"}},
      {"Concat", read_concat, {"axis"}},
      {"Split", read_split, {"axis", "num_outputs", "split"}},
      {"Slice", read_slice, {"axes", "ends", "starts"}},
  };
  return readings;
}

}  // namespace lockstep::onnx

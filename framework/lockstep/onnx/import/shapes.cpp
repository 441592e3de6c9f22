// Shapes, parts, joins and padding.
#include <algorithm>
#include <limits>
#include <numeric>

#include "lockstep/onnx/import/node_reader.h"
#include "lockstep/ops/concat.h"
#include "lockstep/ops/embedding.h"
#include "lockstep/ops/index_select.h"
#include "lockstep/ops/pad.h"
#include "lockstep/ops/permute.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/slice.h"

namespace lockstep::onnx {
namespace {

std::int64_t product_of(std::span<const std::int64_t> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), std::int64_t{1}, std::multiplies<>());
}

// Sizes of 0 are those of x, one of -1 is what is left.
Numbers resolved(const NodeReader& r, const Shape& x, Numbers sizes) {
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

// The sizes of a result of which the file knows those for its own number of samples, `before`: x has more or fewer
// samples along one axis, and so has the axis of the result that begins at the same element.
Numbers rebatched(const NodeReader& r, const Shape& x, const Shape& x_before, Numbers before) {
  int axis = 0;
  while (axis < x.rank() && x[axis] == x_before[axis]) ++axis;
  if (axis == x.rank()) return before;
  const std::int64_t in_front = product_of(std::span(x.dims()).first(static_cast<std::size_t>(axis)));
  const Tracing& tracing = r.tracing();
  std::int64_t so_far = 1;
  for (std::int64_t& size : before) {
    if (so_far == in_front && size % tracing.batch_before == 0) {
      size = size / tracing.batch_before * tracing.batch;
      return before;
    }
    so_far *= size;
  }
  r.refuse(formatted("the file is for {} samples, and {} of them are given: a value of shape {} becomes {} there, in "
                     "which the samples have no axis", tracing.batch_before, tracing.batch, x_before.str(),
                     Shape(before).str()));
}

void read_reshape(const NodeReader& r) {
  const Value x = r.value(0);
  const Numbers given = r.wholes(1, "the shape");
  const Operand* const x_before = r.before(0);
  const Operand* const given_before = r.before(1);
  // Sizes that are the same for another number of samples are those of the file, and no result of a Shape node.
  const bool fixed = x_before != nullptr && x_before->value &&
                     std::ranges::equal(given_before->constant->data<std::int64_t>(), given);
  const Numbers sizes = fixed ? rebatched(r, x.shape(), x_before->value.shape(), resolved(r, x_before->value.shape(), given))
                              : resolved(r, x.shape(), given);
  r.require(product_of(sizes) == x.shape().elements(),
            formatted("a value of shape {} becomes {}, expected as many elements", x.shape().str(), Shape(sizes).str()));
  r.set(reshape(x, Shape(sizes)));
}

void read_flatten(const NodeReader& r) {
  const Value x = r.value(0);
  const int axis = axis_of(r, r.whole_attribute("axis", 1), x.shape().rank() + 1);
  std::int64_t before = 1;
  for (int i = 0; i < axis; ++i) before *= x.shape()[i];
  r.set(reshape(x, Shape{before, before == 0 ? 0 : x.shape().elements() / before}));
}

void read_transpose(const NodeReader& r) {
  const Value x = r.value(0);
  const Numbers order = r.wholes_attribute("perm");
  std::vector<int> axes(order.begin(), order.end());
  for (int i = x.shape().rank(); order.empty() && i-- > 0;) axes.push_back(i);
  r.set(permute(x, axes));
}

void read_squeeze(const NodeReader& r) {
  const Value x = r.value(0);
  const int rank = x.shape().rank();
  std::vector<bool> gone(static_cast<std::size_t>(rank));
  const Numbers axes = r.wholes_of(1, "axes");
  for (const std::int64_t axis : axes) gone[static_cast<std::size_t>(axis_of(r, axis, rank))] = true;
  Numbers sizes;
  for (int i = 0; i < rank; ++i) {
    const bool goes = axes.empty() ? x.shape()[i] == 1 : gone[static_cast<std::size_t>(i)];
    r.require(!goes || x.shape()[i] == 1, formatted("axis {} of {} has more than one element", i, x.shape().str()));
    if (!goes) sizes.push_back(x.shape()[i]);
  }
  r.set(reshape(x, Shape(sizes)));
}

void read_unsqueeze(const NodeReader& r) {
  const Value x = r.value(0);
  Numbers axes = r.wholes_of(1, "axes");
  const int rank = x.shape().rank() + static_cast<int>(axes.size());
  for (std::int64_t& axis : axes) axis = axis_of(r, axis, rank);
  std::ranges::sort(axes);
  Numbers sizes = x.shape().dims();
  for (const std::int64_t axis : axes) sizes.insert(sizes.begin() + axis, 1);
  r.set(reshape(x, Shape(sizes)));
}

void read_concat(const NodeReader& r) {
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
  r.require(static_cast<std::int64_t>(sizes.size()) == count, formatted("{} sizes for {} outputs", sizes.size(), count));
  const std::vector<Value> parts = split(x, sizes, axis);
  for (std::size_t i = 0; i < parts.size(); ++i) r.set(parts[i], i);
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

void read_slice(const NodeReader& r) {
  const Value x = r.value(0);
  const Numbers starts = r.wholes_of(1, "starts"), ends = r.wholes_of(2, "ends"), steps = r.wholes_of(4, "steps");
  Numbers axes = r.wholes_of(3, "axes");
  for (std::size_t i = axes.size(); i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  r.require(starts.size() == ends.size() && axes.size() == starts.size() &&
                (steps.empty() || steps.size() == starts.size()),
            "starts, ends, axes and steps are not as many");
  std::vector<AxisRange> ranges;
  for (const std::int64_t size : x.shape().dims()) ranges.push_back({0, size, 1});
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const int axis = axis_of(r, axes[i], x.shape().rank());
    const std::int64_t step = steps.empty() ? 1 : steps[i];
    r.require(step != 0, "a step of 0");
    AxisRange& range = ranges[static_cast<std::size_t>(axis)];
    range = range_of(starts[i], ends[i], step, x.shape()[axis]);
    if (r.before(0) == nullptr || !r.before(0)->value) continue;
    // All samples of the file are all samples here, also where the file has their number.
    const std::int64_t size = r.before(0)->value.shape()[axis];
    if (size != x.shape()[axis] && range_of(starts[i], ends[i], step, size) == AxisRange{0, size, 1})
      range = {0, x.shape()[axis], 1};
  }
  r.set(slice(x, ranges));
}

// Elements by constant indices: runs of indices are slices, which are joined.
Value by_constant(const NodeReader& r, Value x, int axis, Numbers indices) {
  const std::int64_t size = x.shape()[axis];
  std::vector<Value> runs;
  for (std::int64_t& index : indices) {
    r.require(index >= -size && index < size, formatted("index {} along axis {} of {}", index, axis, x.shape().str()));
    if (index < 0) index += size;
  }
  for (std::size_t begin = 0; begin < indices.size();) {
    std::size_t end = begin + 1;
    while (end < indices.size() && indices[end] == indices[end - 1] + 1) ++end;
    runs.push_back(slice(x, axis, indices[begin], static_cast<std::int64_t>(end - begin)));
    begin = end;
  }
  r.require(!runs.empty(), "no indices, expected at least one");
  return runs.size() == 1 ? runs.front() : concat(runs, axis);
}

void read_gather(const NodeReader& r) {
  const Value x = r.value(0);
  const int axis = axis_of(r, r.whole_attribute("axis", 0), x.shape().rank());
  if (r.constant(1) != nullptr) {
    const Value chosen = by_constant(r, x, axis, r.wholes(1, "the indices"));
    Numbers sizes = x.shape().dims();
    const Shape places = r.shape(1);
    sizes.erase(sizes.begin() + axis);
    sizes.insert(sizes.begin() + axis, places.dims().begin(), places.dims().end());
    r.set(reshape(chosen, Shape(sizes)));
    return;
  }
  const Value indices = r.value(1);
  r.require(indices.dtype() == DType::I32, formatted("indices are {}, expected i32", name_of(indices.dtype())));
  if (axis == 0 && x.shape().rank() == 2) {
    r.set(embedding(indices, x));
  } else {
    r.require(indices.shape().rank() == 1, formatted("indices of shape {}, expected one dimension", indices.shape().str()));
    r.set(index_select(x, axis, indices));
  }
}

void read_expand(const NodeReader& r) {
  const Value x = r.value(0);
  Numbers sizes = r.wholes(1, "the shape");
  const int missing = static_cast<int>(sizes.size()) - x.shape().rank();
  for (std::size_t i = 0; i < sizes.size(); ++i) {  // a size of 1 keeps that of x
    const int axis = static_cast<int>(i) - missing;
    if (axis >= 0 && sizes[i] == 1) sizes[i] = x.shape()[axis];
  }
  const Tracing& tracing = r.tracing();
  if (!sizes.empty() && tracing.batch_before > 1 && sizes[0] == tracing.batch_before) sizes[0] = tracing.batch;
  r.set(x.shape() == Shape(sizes) ? x : x + fill(r.graph(), {Shape(sizes), x.dtype()}, 0));
}

void read_tile(const NodeReader& r) {
  Value x = r.value(0);
  const Numbers repeats = r.wholes(1, "repeats");
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    r.require(repeats[i] >= 1, formatted("{} repeats, expected at least 1", repeats[i]));
    if (repeats[i] > 1) x = concat(std::vector<Value>(static_cast<std::size_t>(repeats[i]), x), static_cast<int>(i));
  }
  r.set(x);
}

void read_pad(const NodeReader& r) {
  const Value x = r.value(0);
  const Numbers pads = r.wholes_of(1, "pads");
  Numbers axes = r.has(3) ? r.wholes(3, "axes") : Numbers{};
  for (int i = 0; axes.empty() && i < x.shape().rank(); ++i) axes.push_back(i);
  if (!r.has(3)) axes.resize(static_cast<std::size_t>(x.shape().rank()));
  r.require(pads.size() == 2 * axes.size(), formatted("{} pads for {} axes, expected two for each", pads.size(), axes.size()));
  if (!r.has(3)) std::iota(axes.begin(), axes.end(), 0);
  std::vector<std::int64_t> padding(static_cast<std::size_t>(2 * x.shape().rank()));  // the last axis first
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto at = static_cast<std::size_t>(2 * (x.shape().rank() - 1 - axis_of(r, axes[i], x.shape().rank())));
    padding[at] = pads[i];
    padding[at + 1] = pads[axes.size() + i];
  }
  const std::string mode = r.text_attribute("mode", "constant");
  const double number = r.has(2) ? r.real(2, "the value") : r.real_attribute("value", 0);
  const PadMode kind = mode == "reflect" ? PadMode::Reflect
                       : mode == "edge"  ? PadMode::Replicate
                       : mode == "wrap"  ? PadMode::Circular
                                         : PadMode::Constant;
  r.require(kind != PadMode::Constant || mode == "constant",
            formatted("mode is {}, expected constant, reflect, edge or wrap", mode));
  r.set(pad(x, padding, kind, number));
}

void read_depth_to_space(const NodeReader& r) {
  Value x = r.value(0);
  const Shape s = x.shape();
  const std::int64_t block = r.whole_attribute("blocksize", 1);
  const std::string mode = r.text_attribute("mode", "DCR");
  r.require(s.rank() == 4 && block >= 1 && s[1] % (block * block) == 0,
            formatted("a value of shape {} does not divide into blocks of {}", s.str(), block));
  if (mode == "DCR") {  // the block is in front of the channels; pixel_shuffle has it behind them
    const std::int64_t channels = s[1] / (block * block);
    x = reshape(x, Shape{s[0], block * block, channels, s[2] * s[3]});
    x = reshape(permute(x, {0, 2, 1, 3}), s);
  }
  r.set(pixel_shuffle(x, block));
}

}  // namespace

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
      {"Gather", read_gather, {"axis"}},
      {"Expand", read_expand},
      {"Tile", read_tile},
      {"Pad", read_pad, {"mode", "pads", "value"}},
      {"DepthToSpace", read_depth_to_space, {"blocksize", "mode"}},
  };
  return readings;
}

}  // namespace lockstep::onnx

// Shapes, parts, joins, padding, reductions and constants.
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "lockstep/onnx/node_writer.h"
#include "lockstep/onnx/numbers.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/concat.h"
#include "lockstep/ops/index_select.h"
#include "lockstep/ops/pad.h"
#include "lockstep/ops/permute.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/slice.h"

namespace lockstep::onnx {
namespace {

void write_slice(const NodeWriter& w, const SliceOp& op) {
  Numbers starts, ends, axes, steps;
  for (std::size_t i = 0; i < op.ranges().size(); ++i) {
    const AxisRange& range = op.ranges()[i];
    const bool whole = range == AxisRange{0, w.types[0].shape[static_cast<int>(i)], 1};
    if (whole && (i + 1 < op.ranges().size() || !starts.empty())) continue;
    const std::int64_t end = range.start + range.length * range.step;
    starts.push_back(range.start);
    ends.push_back(end < 0 ? std::numeric_limits<std::int64_t>::min() : end);  // -1 would be the last element
    axes.push_back(static_cast<std::int64_t>(i));
    steps.push_back(range.step);
  }
  Document& d = w.document;
  d.add("Slice", {w.inputs[0], d.list(starts), d.list(ends), d.list(axes), d.list(steps)}, {}, w.output);
}

void write_place(const NodeWriter& w, const PlaceOp& op) {
  Numbers before, after;
  for (std::size_t i = 0; i < op.ranges().size(); ++i) {
    const AxisRange& range = op.ranges()[i];
    w.require(range.step == 1, "elements placed with gaps between them");
    before.push_back(range.start);
    after.push_back(w.shape()[static_cast<int>(i)] - range.start - range.length);
  }
  before.insert(before.end(), after.begin(), after.end());
  Document& d = w.document;
  d.add("Pad", {w.inputs[0], d.list(before), d.scalar(op.value(), w.dtype())}, {{"mode", std::string("constant")}},
        w.output);
}

// Elements by their indices along each axis for which there are some.
void write_by_index(const NodeWriter& w, const std::vector<Numbers>& indices) {
  std::string value = w.inputs[0];
  for (std::size_t axis = 0; axis < indices.size(); ++axis) {
    if (indices[axis].empty()) continue;
    value =
        w.document.add("Gather", {value, w.document.list(indices[axis])}, {{"axis", static_cast<std::int64_t>(axis)}});
  }
  w.document.add("Identity", {value}, {}, w.output);
}

void write_pad(const NodeWriter& w, const PadOp& op) {
  std::vector<Numbers> indices(op.padding().size());
  for (std::size_t axis = 0; axis < indices.size(); ++axis) {
    const AxisPadding& padding = op.padding()[axis];
    const std::int64_t size = w.types[0].shape[static_cast<int>(axis)];
    if (padding == AxisPadding{}) continue;
    for (std::int64_t i = -padding.before; i < size + padding.after; ++i)
      indices[axis].push_back(i >= 0 && i < size ? i : padded_index(op.mode(), i, size));
  }
  write_by_index(w, indices);
}

void write_roll(const NodeWriter& w, const RollOp& op) {
  std::vector<Numbers> indices(op.shifts().size());
  for (std::size_t axis = 0; axis < indices.size(); ++axis) {
    const std::int64_t size = w.shape()[static_cast<int>(axis)];
    if (op.shifts()[axis] == 0 || size == 0) continue;
    for (std::int64_t i = 0; i < size; ++i) indices[axis].push_back(((i - op.shifts()[axis]) % size + size) % size);
  }
  write_by_index(w, indices);
}

void write_reduction(const NodeWriter& w, const ReduceOp& op) {
  Document& d = w.document;
  const Numbers axes(op.axes().begin(), op.axes().end());
  const auto keep = std::int64_t{w.shape().rank() == w.types[0].shape.rank()};
  if (axes.empty()) {
    d.add("Identity", w.inputs, {}, w.output);
  } else if (op.kind() == ReduceOp::Kind::Sum) {  // version 13 has the axes of this one alone as an input
    d.add("ReduceSum", {w.inputs[0], d.list(axes)}, {{"keepdims", keep}}, w.output);
  } else {
    const char* name = op.kind() == ReduceOp::Kind::Mean  ? "ReduceMean"
                       : op.kind() == ReduceOp::Kind::Max ? "ReduceMax"
                       : op.kind() == ReduceOp::Kind::Min ? "ReduceMin"
                                                          : "ReduceLogSumExp";
    d.add(name, {w.inputs[0]}, {{"axes", axes}, {"keepdims", keep}}, w.output);
  }
}

// factor * x, for an x of one element, in all elements of the result.
void write_expand(const NodeWriter& w, const ExpandOp& op) {
  Document& d = w.document;
  const std::string one = d.add("Reshape", {w.inputs[0], d.list({})});
  const std::string value = d.add("Mul", {one, d.scalar(op.factor(), w.dtype())});
  d.add("Expand", {value, d.list(w.shape().dims())}, {}, w.output);
}

bool write_moves(const NodeWriter& w, const Op* op) {
  Document& d = w.document;
  if (const auto* slice = dynamic_cast<const SliceOp*>(op)) {
    write_slice(w, *slice);
  } else if (const auto* place = dynamic_cast<const PlaceOp*>(op)) {
    write_place(w, *place);
  } else if (const auto* pad = dynamic_cast<const PadOp*>(op)) {
    write_pad(w, *pad);
  } else if (const auto* roll = dynamic_cast<const RollOp*>(op)) {
    write_roll(w, *roll);
  } else if (const auto* chosen = dynamic_cast<const IndexSelectOp*>(op)) {
    d.add("Gather", {w.inputs[0], w.inputs[1]}, {{"axis", std::int64_t{chosen->axis()}}}, w.output);
  } else if (const auto* split = dynamic_cast<const SplitOp*>(op)) {
    Numbers sizes;
    for (const Type& part : w.node.outputs) sizes.push_back(part.shape[split->axis()]);
    d.add("Split", {w.inputs[0], d.list(sizes)}, w.outputs, {{"axis", std::int64_t{split->axis()}}});
  } else {
    return false;
  }
  return true;
}

}  // namespace

bool write_shapes(const NodeWriter& w) {
  Document& d = w.document;
  const Op* op = w.node.op.get();
  if (dynamic_cast<const ReshapeOp*>(op) != nullptr) {
    d.add("Reshape", {w.inputs[0], d.list(w.shape().dims())}, {}, w.output);
  } else if (const auto* permute = dynamic_cast<const PermuteOp*>(op)) {
    d.add("Transpose", w.inputs, {{"perm", Numbers(permute->axes().begin(), permute->axes().end())}}, w.output);
  } else if (const auto* concat = dynamic_cast<const ConcatOp*>(op)) {
    d.add("Concat", w.inputs, {{"axis", std::int64_t{concat->axis()}}}, w.output);
  } else if (const auto* reduce = dynamic_cast<const ReduceOp*>(op)) {
    write_reduction(w, *reduce);
  } else if (const auto* expand = dynamic_cast<const ExpandOp*>(op)) {
    write_expand(w, *expand);
  } else if (const auto* fill = dynamic_cast<const FillOp*>(op)) {
    d.add("Expand", {d.scalar(fill->value(), w.dtype()), d.list(w.shape().dims())}, {}, w.output);
  } else if (dynamic_cast<const CastOp*>(op) != nullptr) {
    w.require(w.dtype() == DType::F32 || w.dtype() == DType::F64, "a conversion to another type than f32 and f64");
    d.add("Cast", w.inputs, {{"to", std::int64_t{w.dtype() == DType::F32 ? 1 : 11}}}, w.output);
  } else {
    return write_moves(w, op);
  }
  return true;
}

}  // namespace lockstep::onnx

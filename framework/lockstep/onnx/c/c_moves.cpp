// Elements in other places: permutations, parts, joins and padding; also fills and conversions.
#include "lockstep/core/format.h"
#include "lockstep/onnx/c/c_writer.h"
#include "lockstep/onnx/numbers.h"
#include "lockstep/ops/concat.h"
#include "lockstep/ops/pad.h"
#include "lockstep/ops/permute.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/slice.h"
#include "lockstep/ops/to_floating.h"

namespace lockstep::onnx {
namespace {

// Where elements of a value begin, and how far neighbours are apart along each axis.
struct Places {
  std::int64_t first = 0;
  Numbers strides;
};

void move(const CNode& n, const std::string& to, const Places& y, const std::string& from, const Places& x,
          const Shape& sizes) {
  Numbers to_strides = y.strides, from_strides = x.strides, dims = sizes.dims();
  if (dims.empty()) {  // a scalar is a list of one
    dims = to_strides = from_strides = {1};
  }
  constexpr std::size_t kRanks = 8;
  n.require(dims.size() <= kRanks, "more than 8 dimensions");
  const char* name = n.node.outputs[0].dtype == DType::I32 ? "move_ids" : "move";
  n.body.call(name, formatted("{} + {}, {} + {}, {}, {}, {}, {}", to, y.first, from, x.first, dims.size(),
                              n.body.table(dims), n.body.table(to_strides), n.body.table(from_strides)));
}

Places dense(const Shape& shape) { return {0, dense_strides(shape)}; }

// The places of the elements of `ranges` in a value of this shape.
Places part(const Shape& shape, const std::vector<AxisRange>& ranges) {
  Places places = dense(shape);
  for (std::size_t axis = 0; axis < ranges.size(); ++axis) {
    places.first += ranges[axis].start * places.strides[axis];
    places.strides[axis] *= ranges[axis].step;
  }
  return places;
}

void write_permute(const CNode& n, const PermuteOp& op) {
  const Numbers strides = dense_strides(n.types[0].shape);
  Places from;
  for (const int axis : op.axes()) from.strides.push_back(strides[static_cast<std::size_t>(axis)]);
  move(n, n.outputs[0], dense(n.shape()), n.inputs[0], from, n.shape());
}

void fill(const CNode& n, const std::string& to, std::int64_t count, double value) {
  n.body.add(formatted("for (i = 0; i < {}; ++i) ({})[i] = {};", count, to, c_number(value)));
}

void write_place(const CNode& n, const PlaceOp& op) {
  fill(n, n.outputs[0], n.shape().elements(), op.value());
  move(n, n.outputs[0], part(n.shape(), op.ranges()), n.inputs[0], dense(n.types[0].shape), n.types[0].shape);
}

void write_concat(const CNode& n, const ConcatOp& op) {
  Places to = dense(n.shape());
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    const Shape& shape = n.types[i].shape;
    move(n, n.outputs[0], to, n.inputs[i], dense(shape), shape);
    to.first += shape[op.axis()] * to.strides[static_cast<std::size_t>(op.axis())];
  }
}

void write_split(const CNode& n, const SplitOp& op) {
  Places from = dense(n.types[0].shape);
  for (std::size_t i = 0; i < n.outputs.size(); ++i) {
    const Shape& shape = n.shape(i);
    if (!n.outputs[i].empty()) move(n, n.outputs[i], dense(shape), n.inputs[0], from, shape);
    from.first += shape[op.axis()] * from.strides[static_cast<std::size_t>(op.axis())];
  }
}

// One axis after the other, between the two halves of the scratch memory.
void write_pad(const CNode& n, const PadOp& op) {
  Shape shape = n.types[0].shape;
  std::vector<int> axes;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (op.padding()[static_cast<std::size_t>(axis)] != AxisPadding{}) axes.push_back(axis);
  }
  std::int64_t most = 0;
  Shape sizes = shape;
  for (const int axis : axes) {
    sizes[axis] = n.shape()[axis];
    most = std::max(most, sizes.elements());
  }
  n.body.scratch(2 * most);
  std::string from = n.inputs[0];
  for (std::size_t k = 0; k < axes.size(); ++k) {
    const int axis = axes[k];
    const AxisPadding& padding = op.padding()[static_cast<std::size_t>(axis)];
    Numbers source;
    for (std::int64_t i = -padding.before; i < shape[axis] + padding.after; ++i)
      source.push_back(i >= 0 && i < shape[axis] ? i : padded_index(op.mode(), i, shape[axis]));
    std::int64_t outer = 1, inner = 1;
    for (int a = 0; a < shape.rank(); ++a) {
      if (a < axis) outer *= shape[a];
      if (a > axis) inner *= shape[a];
    }
    const std::string to =
        k + 1 == axes.size() ? n.outputs[0] : formatted("scratch + {}", static_cast<std::int64_t>(k % 2) * most);
    n.body.call("take_along", formatted("{}, {}, {}, {}, {}, {}, {}", to, from, outer, shape[axis], source.size(),
                                        inner, n.body.table(source)));
    shape[axis] = static_cast<std::int64_t>(source.size());
    from = to;
  }
}

}  // namespace

bool write_c_moves(const CNode& n) {
  const Op* op = n.node.op.get();
  if (const auto* permute = dynamic_cast<const PermuteOp*>(op)) {
    write_permute(n, *permute);
  } else if (const auto* slice = dynamic_cast<const SliceOp*>(op)) {
    move(n, n.outputs[0], dense(n.shape()), n.inputs[0], part(n.types[0].shape, slice->ranges()), n.shape());
  } else if (const auto* place = dynamic_cast<const PlaceOp*>(op)) {
    write_place(n, *place);
  } else if (const auto* concat = dynamic_cast<const ConcatOp*>(op)) {
    write_concat(n, *concat);
  } else if (const auto* split = dynamic_cast<const SplitOp*>(op)) {
    write_split(n, *split);
  } else if (const auto* pad = dynamic_cast<const PadOp*>(op)) {
    write_pad(n, *pad);
  } else if (const auto* filled = dynamic_cast<const FillOp*>(op)) {
    fill(n, n.outputs[0], n.shape().elements(), filled->value());
  } else if (dynamic_cast<const ToFloatingOp*>(op) != nullptr) {
    n.body.add(formatted("for (i = 0; i < {}; ++i) ({})[i] = (real)({})[i];", n.shape().elements(), n.outputs[0],
                         n.inputs[0]));
  } else {
    return false;
  }
  return true;
}

}  // namespace lockstep::onnx

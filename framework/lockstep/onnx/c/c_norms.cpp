// Normalisations, softmax and reductions.
#include <algorithm>

#include "lockstep/core/format.h"
#include "lockstep/onnx/c/c_writer.h"
#include "lockstep/ops/batch_norm2d.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/row_norm.h"
#include "lockstep/ops/softmax.h"

namespace lockstep::onnx {
namespace {

struct Around {
  std::int64_t outer = 1, count = 1, inner = 1;
};

// The elements in front of the axes from `first` to `last`, of these, and behind them.
Around around(const Shape& shape, int first, int last) {
  Around a;
  for (int axis = 0; axis < shape.rank(); ++axis)
    (axis < first ? a.outer : axis <= last ? a.count : a.inner) *= shape[axis];
  return a;
}

void write_batch_norm(const CNode& n, const BatchNorm2dInferenceOp& op) {
  n.require(op.epilogue() == Epilogue{}, "an epilogue");
  const Shape& x = n.types[0].shape;
  n.body.call("scale_channels",
              formatted("{}, {}, {}, {}, {}, {}, {}, {}, {}, {}", n.outputs[0], n.inputs[0], n.inputs[1], n.inputs[2],
                        n.inputs[3], n.inputs[4], x[0], x[1], x.elements() / std::max<std::int64_t>(x[0] * x[1], 1),
                        c_number(op.epsilon())));
}

void write_row_norm(const CNode& n, const RowNormOp& op) {
  const RowNormOptions& options = op.options();
  n.require((n.outputs.size() < 2 || n.outputs[1].empty()) && (n.outputs.size() < 3 || n.outputs[2].empty()),
            "statistics as outputs");
  const RowView rows(n.types[0].shape, options);
  const bool grouped = options.groups > 0;
  n.body.call("normalise",
              formatted("{}, {}, {}, {}, {}, {}, {}, {}, {}, {}", n.outputs[0], n.inputs[0],
                        n.inputs.size() > 1 ? n.inputs[1] : "NULL", n.inputs.size() > 2 ? n.inputs[2] : "NULL",
                        rows.rows, grouped ? rows.row_channels : rows.size, grouped ? rows.spatial : 1,
                        grouped ? rows.groups : 1, options.centred ? 1 : 0, c_number(options.epsilon)));
}

void write_softmax(const CNode& n, const SoftmaxOp& op) {
  const int axis = op.axis() < 0 ? op.axis() + n.shape().rank() : op.axis();
  const Around a = around(n.shape(), axis, axis);
  n.body.call("softmax", formatted("{}, {}, {}, {}, {}", n.outputs[0], n.inputs[0], a.outer, a.count, a.inner));
}

void write_reduction(const CNode& n, const ReduceOp& op) {
  const Shape& x = n.types[0].shape;
  std::vector<int> axes = op.axes();
  for (int axis = 0; op.axes().empty() && axis < x.rank(); ++axis) axes.push_back(axis);
  n.require(axes.empty() || axes.back() - axes.front() + 1 == static_cast<int>(axes.size()),
            "a reduction over axes that are not neighbours");
  const Around a = axes.empty() ? Around{.outer = x.elements()} : around(x, axes.front(), axes.back());
  n.body.call("reduce", formatted("{}, {}, {}, {}, {}, {}", n.outputs[0], n.inputs[0], a.outer, a.count, a.inner,
                                  static_cast<int>(op.kind())));
}

}  // namespace

bool write_c_norms(const CNode& n) {
  static_assert(static_cast<int>(ReduceOp::Kind::LogSumExp) == 4, "the helper counts the kinds in this order");
  const Op* op = n.node.op.get();
  if (const auto* batch = dynamic_cast<const BatchNorm2dInferenceOp*>(op)) {
    write_batch_norm(n, *batch);
  } else if (const auto* rows = dynamic_cast<const RowNormOp*>(op)) {
    write_row_norm(n, *rows);
  } else if (const auto* softmax = dynamic_cast<const SoftmaxOp*>(op)) {
    write_softmax(n, *softmax);
  } else if (const auto* reduction = dynamic_cast<const ReduceOp*>(op)) {
    write_reduction(n, *reduction);
  } else {
    return false;
  }
  return true;
}

}  // namespace lockstep::onnx

// Normalisations and softmax. Those of rows are written in elementary operators: version 13 has none of them.
#include <string>
#include <vector>

#include "lockstep/onnx/node_writer.h"
#include "lockstep/onnx/numbers.h"
#include "lockstep/ops/batch_norm2d.h"
#include "lockstep/ops/row_norm.h"
#include "lockstep/ops/softmax.h"

namespace lockstep::onnx {
namespace {

// `name` divided by its deviation, or by the root of its mean square, over these axes.
std::string normalised(const NodeWriter& w, std::string name, const Numbers& axes, const RowNormOptions& options) {
  Document& d = w.document;
  const std::vector<Attribute> over{{"axes", axes}, {"keepdims", std::int64_t{1}}};
  if (options.centred) name = d.add("Sub", {name, d.add("ReduceMean", {name}, over)});
  const std::string square = d.add("ReduceMean", {d.add("Mul", {name, name})}, over);
  return d.add("Div", {name, d.add("Sqrt", {d.add("Add", {square, d.scalar(options.epsilon, w.dtype())})})});
}

void write_row_norm(const NodeWriter& w, const RowNormOptions& options) {
  Document& d = w.document;
  const Shape& shape = w.shape();
  std::string value = w.inputs[0];
  Numbers parameters = {};  // the shape of weight and bias, where it is not the one that they have
  if (options.groups > 0) {
    value = d.add("Reshape", {value, d.list({shape[0], options.groups, -1})});
    value = normalised(w, value, {2}, options);
    value = d.add("Reshape", {value, d.list(shape.dims())});
    parameters.assign(static_cast<std::size_t>(shape.rank() - 1), 1);
    parameters[0] = shape[1];
  } else {
    Numbers axes;
    for (int axis = shape.rank() - options.dims; axis < shape.rank(); ++axis) axes.push_back(axis);
    value = normalised(w, value, axes, options);
  }
  const auto operand = [&](std::size_t i) {
    return parameters.empty() ? w.inputs[i] : d.add("Reshape", {w.inputs[i], d.list(parameters)});
  };
  if (w.inputs.size() > 1) value = d.add("Mul", {value, operand(1)});
  if (w.inputs.size() > 2) value = d.add("Add", {value, operand(2)});
  d.add("Identity", {value}, {}, w.output);
}

}  // namespace

bool write_norms(const NodeWriter& w) {
  const Op* op = w.node.op.get();
  if (const auto* batch = dynamic_cast<const BatchNorm2dInferenceOp*>(op)) {
    w.require(batch->epilogue() == Epilogue{}, "an epilogue");
    w.document.add("BatchNormalization", w.inputs, {{"epsilon", batch->epsilon()}}, w.output);
  } else if (const auto* rows = dynamic_cast<const RowNormOp*>(op)) {
    write_row_norm(w, rows->options());
  } else if (const auto* softmax = dynamic_cast<const SoftmaxOp*>(op)) {
    w.document.add("Softmax", w.inputs, {{"axis", std::int64_t{softmax->axis()}}}, w.output);
  } else {
    return false;
  }
  return true;
}

}  // namespace lockstep::onnx

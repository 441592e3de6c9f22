// Convolutions, pooling and resampling over spatial axes.
#include <string>
#include <vector>

#include "lockstep/onnx/node_writer.h"
#include "lockstep/onnx/numbers.h"
#include "lockstep/ops/convolution.h"
#include "lockstep/ops/pool.h"
#include "lockstep/ops/resample.h"
#include "lockstep/ops/window.h"

namespace lockstep::onnx {
namespace {

// `number` of each axis.
template <class Axis, class Number>
Numbers of_axes(const std::vector<Axis>& axes, Number number) {
  Numbers numbers;
  for (const Axis& axis : axes) numbers.push_back(number(axis));
  return numbers;
}

// ONNX has the padding in front of all axes, then that behind them.
Numbers both_ends(Numbers padding) {
  const Numbers front = padding;
  padding.insert(padding.end(), front.begin(), front.end());
  return padding;
}

std::vector<Attribute> convolution_attributes(const ConvolutionOptions& options) {
  return {{"strides", of_axes(options.axes, [](const ConvolutionAxis& a) { return a.stride; })},
          {"dilations", of_axes(options.axes, [](const ConvolutionAxis& a) { return a.dilation; })},
          {"pads", both_ends(of_axes(options.axes, [](const ConvolutionAxis& a) { return a.padding; }))},
          {"group", options.groups}};
}

// The gradient by x, used forwards. What the sizes leave open is the padding of the output.
void write_transposed(const NodeWriter& w, const ConvolutionBackwardDataOp& op) {
  Numbers rest;
  for (std::size_t i = 0; i < op.options().axes.size(); ++i) {
    const ConvolutionAxis& a = op.options().axes[i];
    const int axis = static_cast<int>(i) + 2;
    const std::int64_t least =
        (w.types[0].shape[axis] - 1) * a.stride - 2 * a.padding + a.dilation * (w.types[1].shape[axis] - 1) + 1;
    rest.push_back(w.shape()[axis] - least);
  }
  std::vector<Attribute> attributes = convolution_attributes(op.options());
  attributes.emplace_back("output_padding", rest);
  w.document.add("ConvTranspose", w.inputs, attributes, w.output);
}

void write_pool(const NodeWriter& w, const PoolOp& op) {
  const PoolOptions& options = op.options();
  for (std::size_t i = 0; i < options.axes.size(); ++i) {
    const PoolAxis& a = options.axes[i];
    const int axis = static_cast<int>(i) + 2;
    const std::int64_t in = w.types[0].shape[axis], out = w.shape()[axis];
    const std::int64_t span = in + 2 * a.padding - a.dilation * (a.kernel - 1) - 1;
    w.require(!options.ceil_mode || (span + a.stride - 1) / a.stride + 1 == out,
              "a pooling in ceil mode whose last window would lie in the padding");
    w.require(op.kind() == Pool::Max || (out - 1) * a.stride + a.kernel <= in + 2 * a.padding,
              "an average in ceil mode whose last window reaches over the end");
  }
  std::vector<Attribute> attributes = {
      {"kernel_shape", of_axes(options.axes, [](const PoolAxis& a) { return a.kernel; })},
      {"strides", of_axes(options.axes, [](const PoolAxis& a) { return a.stride; })},
      {"pads", both_ends(of_axes(options.axes, [](const PoolAxis& a) { return a.padding; }))},
      {"ceil_mode", std::int64_t{options.ceil_mode}}};
  if (op.kind() == Pool::Max) {
    attributes.emplace_back("dilations", of_axes(options.axes, [](const PoolAxis& a) { return a.dilation; }));
  } else {
    attributes.emplace_back("count_include_pad", std::int64_t{options.count_include_pad});
  }
  w.document.add(op.kind() == Pool::Max ? "MaxPool" : "AveragePool", {w.inputs[0]}, attributes, w.output);
}

// The map along one axis as a matrix (in, out), in the type of the values.
Tensor matrix_of(const AxisMap& map, DType dtype) {
  std::vector<double> weights(static_cast<std::size_t>(map.in() * map.out()));
  for (std::int64_t i = 0; i < map.out(); ++i) {
    for (const AxisMap::Tap& tap : map.taps()[static_cast<std::size_t>(i)])
      weights[static_cast<std::size_t>(tap.from * map.out() + i)] += tap.weight;
  }
  const Tensor exact = Tensor::from<double>(Shape{map.in(), map.out()}, weights);
  return exact.to(dtype);
}

// Product with a matrix along each axis in turn: exact for every mode, where ONNX's Resize has modes of its own.
void write_resample(const NodeWriter& w, const ResampleOp& op) {
  const int rank = w.shape().rank(), axes = static_cast<int>(op.maps().size());
  std::string value = w.inputs[0];
  for (int i = 0; i < axes; ++i) {
    const int axis = rank - axes + i;
    Numbers order(static_cast<std::size_t>(rank));
    for (int k = 0; k < rank; ++k) order[static_cast<std::size_t>(k)] = k;
    std::swap(order[static_cast<std::size_t>(axis)], order.back());
    const std::string matrix = w.document.constant(matrix_of(op.maps()[static_cast<std::size_t>(i)], w.dtype()));
    const std::string last = w.document.add("Transpose", {value}, {{"perm", order}});
    const std::string product = w.document.add("MatMul", {last, matrix});
    value = w.document.add("Transpose", {product}, {{"perm", order}}, i + 1 == axes ? w.output : "");
  }
}

}  // namespace

bool write_windows(const NodeWriter& w) {
  const Op* op = w.node.op.get();
  if (const auto* convolution = dynamic_cast<const ConvolutionOp*>(op)) {
    w.require(convolution->epilogue() == Epilogue{}, "an epilogue");
    w.document.add("Conv", w.inputs, convolution_attributes(convolution->options()), w.output);
  } else if (const auto* transposed = dynamic_cast<const ConvolutionBackwardDataOp*>(op)) {
    write_transposed(w, *transposed);
  } else if (const auto* pool = dynamic_cast<const PoolOp*>(op)) {
    write_pool(w, *pool);
  } else if (const auto* resample = dynamic_cast<const ResampleOp*>(op)) {
    write_resample(w, *resample);
  } else {
    return false;
  }
  return true;
}

}  // namespace lockstep::onnx

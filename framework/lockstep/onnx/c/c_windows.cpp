// Convolutions, pooling and resampling.
#include <algorithm>
#include <array>

#include "lockstep/core/format.h"
#include "lockstep/onnx/c/c_writer.h"
#include "lockstep/ops/convolution.h"
#include "lockstep/ops/pool.h"
#include "lockstep/ops/resample.h"

namespace lockstep::onnx {
namespace {

using Sizes = std::vector<std::int64_t>;

// Three axes, of which the outer ones are 1 (or 0, for padding) where there are fewer.
std::string three(const Sizes& numbers, std::int64_t missing = 1) {
  Sizes all(3 - numbers.size(), missing);
  all.insert(all.end(), numbers.begin(), numbers.end());
  return formatted("{{{}}}", c_list(all));
}

Sizes spatial(const Shape& shape) { return Sizes(shape.dims().begin() + 2, shape.dims().end()); }

// The literal of the C type `convolution`.
template <class Axis>
std::string geometry(const Shape& in, const Shape& out, const Sizes& kernel, std::int64_t groups,
                     const std::vector<Axis>& axes) {
  Sizes stride, padding, dilation;
  for (const Axis& axis : axes) {
    stride.push_back(axis.stride);
    padding.push_back(axis.padding);
    dilation.push_back(axis.dilation);
  }
  return formatted("&(convolution){{{}, {}, {}, {}, {}, {}, {}, {}, {}}}", in[1], out[1], groups, three(spatial(in)),
                   three(spatial(out)), three(kernel), three(stride), three(padding, 0), three(dilation));
}

// Calls a function for each image of a value: a value in the middle of a model may have several for one sample.
// `further`: the arguments behind y and x.
void call_for_images(const CNode& n, std::string_view function, const std::string& further) {
  const Shape &x = n.types[0].shape, &y = n.shape();
  if (x[0] == 1) return n.body.call(std::string(function), formatted("{}, {}, {}", n.outputs[0], n.inputs[0], further));
  n.body.add(formatted("for (i = 0; i < {}; ++i)", x[0]));
  n.body.call(std::string(function),
              formatted("{} + i * {}, {} + i * {}, {}", n.outputs[0], y.elements() / std::max<std::int64_t>(y[0], 1),
                        n.inputs[0], x.elements() / std::max<std::int64_t>(x[0], 1), further));
}

void write_convolution(const CNode& n, const ConvolutionOp& op) {
  n.require(op.epilogue() == Epilogue{}, "an epilogue");
  const Shape &x = n.types[0].shape, &weight = n.types[1].shape;
  constexpr std::int64_t kLanes = 16;
  n.body.scratch(weight.tail().elements() * kLanes);
  n.body.need("convolution");
  call_for_images(n, "convolve",
                  formatted("{}, {}, scratch, {}", n.inputs[1], n.inputs.size() > 2 ? n.inputs[2] : "NULL",
                            geometry(x, n.shape(), spatial(weight), op.options().groups, op.options().axes)));
}

// A convolution from y to x has the geometry.
void write_spread(const CNode& n, const ConvolutionBackwardDataOp& op) {
  n.body.need("convolution");
  call_for_images(n, "spread",
                  formatted("{}, {}", n.inputs[1],
                            geometry(n.shape(), n.types[0].shape, spatial(n.types[1].shape), op.options().groups,
                                     op.options().axes)));
}

void write_pool(const CNode& n, const PoolOp& op) {
  Sizes kernel;
  for (const PoolAxis& axis : op.options().axes) kernel.push_back(axis.kernel);
  n.require(n.outputs.size() == 1 || n.outputs[1].empty(), "positions of maxima as an output");
  n.body.need("convolution");
  call_for_images(n, "pool",
                  formatted("{}, {}, {}", op.kind() == Pool::Average ? 1 : 0, op.options().count_include_pad ? 1 : 0,
                            geometry(n.types[0].shape, n.shape(), kernel, 1, op.options().axes)));
}

// One axis after the other, between the two halves of the scratch memory.
void write_resample(const CNode& n, const ResampleOp& op) {
  Shape shape = n.types[0].shape;
  const int axes = static_cast<int>(op.maps().size()), first_axis = shape.rank() - axes;
  std::int64_t most = 0;
  Shape sizes = shape;
  for (int i = 0; i < axes; ++i) {
    sizes[first_axis + i] = op.maps()[static_cast<std::size_t>(i)].out();
    most = std::max(most, sizes.elements());
  }
  n.body.scratch(2 * most);
  std::string from = n.inputs[0];
  for (int i = 0; i < axes; ++i) {
    const AxisMap& map = op.maps()[static_cast<std::size_t>(i)];
    Sizes first{0}, source;
    std::vector<double> weight;
    for (const auto& taps : map.taps()) {
      for (const AxisMap::Tap& tap : taps) {
        source.push_back(tap.from);
        weight.push_back(tap.weight);
      }
      first.push_back(static_cast<std::int64_t>(source.size()));
    }
    std::int64_t outer = 1, inner = 1;
    for (int k = 0; k < shape.rank(); ++k) (k < first_axis + i ? outer : inner) *= k == first_axis + i ? 1 : shape[k];
    const std::string to = i + 1 == axes ? n.outputs[0] : formatted("scratch + {}", i % 2 * most);
    n.body.call("resample", formatted("{}, {}, {}, {}, {}, {}, {}, {}, {}", to, from, outer, map.in(), map.out(), inner,
                                      n.body.table(first), n.body.table(source), n.body.table(weight)));
    shape[first_axis + i] = map.out();
    from = to;
  }
}

}  // namespace

bool write_c_windows(const CNode& n) {
  const Op* op = n.node.op.get();
  if (const auto* convolution = dynamic_cast<const ConvolutionOp*>(op)) {
    write_convolution(n, *convolution);
  } else if (const auto* spread = dynamic_cast<const ConvolutionBackwardDataOp*>(op)) {
    write_spread(n, *spread);
  } else if (const auto* pool = dynamic_cast<const PoolOp*>(op)) {
    write_pool(n, *pool);
  } else if (const auto* resample = dynamic_cast<const ResampleOp*>(op)) {
    write_resample(n, *resample);
  } else {
    return false;
  }
  return true;
}

}  // namespace lockstep::onnx

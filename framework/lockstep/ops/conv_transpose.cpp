#include "lockstep/ops/conv_transpose.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/shape_axes.h"
#include "lockstep/ops/window.h"

namespace lockstep {
namespace {

// The conditions on the operands of a transposed convolution; `op` and `path` are for errors.
struct TransposedCheck {
  std::string_view op;
  std::string path;
  const ConvTransposeOptions& options;

  void operands(Value x, Value weight, Value bias) const {
    const ConvolutionOptions& o = options.convolution;
    const int axes = static_cast<int>(o.axes.size());
    const Shape &in = x.shape(), &w = weight.shape();
    check(in.rank() == axes + 2, op, "{}: input is {}, expected (samples, channels, {})", path, in.str(),
          axis_names(axes));
    check(w.rank() == axes + 2, op, "{}: weight is {}, expected (in, out / groups, {})", path, w.str(),
          axis_names(axes));
    check(sum_type(x.dtype()) == weight.dtype(), op, "{}: input is {}, weight {}: {}", path, x.type().str(),
          weight.type().str(), kTypesDiffer);
    check(o.groups > 0 && w[0] % o.groups == 0, op, "{}: {} input channels do not divide into {} groups", path, w[0],
          o.groups);
    check(in[1] == w[0], op, "{}: input has {} channels, weight expects {}", path, in[1], w[0]);
    if (!bias) return;
    const Type expected{Shape{w[1] * o.groups}, weight.dtype()};
    check(bias.type() == expected, op, "{}: bias is {}, expected {}", path, bias.type().str(), expected.str());
  }

  // The elements of the result along an axis.
  std::int64_t size(std::size_t axis, std::int64_t in, std::int64_t filter) const {
    const ConvolutionAxis& a = options.convolution.axes[axis];
    const std::int64_t more = options.output_padding.empty() ? 0 : options.output_padding[axis];
    check(a.stride > 0 && a.dilation > 0 && a.padding >= 0, op,
          "{}: stride is {}, dilation {}, padding {}; expected positive numbers, and padding 0 or more", path, a.stride,
          a.dilation, a.padding);
    check(more >= 0 && more < a.stride, op, "{}: output padding is {}, expected 0 or more, and less than the stride {}",
          path, more, a.stride);
    const std::int64_t out = (in - 1) * a.stride - 2 * a.padding + a.dilation * (filter - 1) + more + 1;
    check(out > 0, op, "{}: {} elements become {} along an axis, expected at least 1", path, in, out);
    return out;
  }
};

}  // namespace

Value conv_transpose(Value x, Value weight, Value bias, ConvTransposeOptions options) {
  constexpr std::string_view kNames[] = {"conv_transpose", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"};
  ConvolutionOptions& o = options.convolution;
  if (o.axes.empty()) o.axes.resize(static_cast<std::size_t>(std::max(weight.shape().rank() - 2, 0)));
  const std::string path = axes::path(x);
  check(!o.axes.empty() && o.axes.size() <= kMostAxes, kNames[0], "{}: there are {} axes, expected 1 to {}", path,
        o.axes.size(), kMostAxes);
  x = cast_for_product(x);
  const TransposedCheck fits{kNames[o.axes.size()], path, options};
  fits.operands(x, weight, bias);
  check(options.output_padding.empty() || options.output_padding.size() == o.axes.size(), fits.op,
        "{}: there are {} output paddings, expected one for each of {} axes", path, options.output_padding.size(),
        o.axes.size());
  std::vector<std::int64_t> sizes{x.shape()[0], weight.shape()[1] * o.groups};
  for (std::size_t i = 0; i < o.axes.size(); ++i) {
    const int axis = static_cast<int>(i) + 2;
    sizes.push_back(fits.size(i, x.shape()[axis], weight.shape()[axis]));
  }
  const Value y = apply_op(std::make_shared<ConvolutionBackwardDataOp>(o, Shape(std::move(sizes))), {x, weight});
  return bias ? y + over_channels(bias, y.type()) : y;
}

}  // namespace lockstep

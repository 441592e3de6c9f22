#include "lockstep/ops/pool2d.h"

#include <fmt/format.h>

#include "lockstep/core/error.h"
#include "lockstep/ops/window.h"

namespace lockstep {

std::vector<Type> Pool2dOp::infer(std::string_view path, std::span<const Type> inputs) const {
  const Shape& x = inputs[0].shape;
  const Pool2dOptions& o = options_;
  check(x.rank() == 4, name(), "{}: input is {}, expected (samples, channels, height, width)", path, x.str());
  check(o.kernel_h > 0 && o.kernel_w > 0 && o.stride_h > 0 && o.stride_w > 0 && o.dilation_h > 0 && o.dilation_w > 0,
        name(), "{}: kernel, stride and dilation must be positive: {}", path, attributes());
  check(kind_ == Pool::Max || (o.dilation_h == 1 && o.dilation_w == 1), name(),
        "{}: dilation is {}x{}, expected 1x1: only max pooling has one", path, o.dilation_h, o.dilation_w);
  check(o.padding_h >= 0 && o.padding_w >= 0 && o.padding_h * 2 <= o.kernel_h && o.padding_w * 2 <= o.kernel_w, name(),
        "{}: padding {}x{} must be at most half of the kernel {}x{}", path, o.padding_h, o.padding_w, o.kernel_h,
        o.kernel_w);
  check(x[2] + 2 * o.padding_h >= o.dilation_h * (o.kernel_h - 1) + 1 &&
            x[3] + 2 * o.padding_w >= o.dilation_w * (o.kernel_w - 1) + 1,
        name(), "{}: input {}x{} is smaller than the window {}x{}", path, x[2], x[3], o.kernel_h, o.kernel_w);
  const std::int64_t h = window_count(x[2], o.kernel_h, o.stride_h, o.padding_h, o.dilation_h, o.ceil_mode);
  const std::int64_t w = window_count(x[3], o.kernel_w, o.stride_w, o.padding_w, o.dilation_w, o.ceil_mode);
  const Shape y{x[0], x[1], h, w};
  if (kind_ == Pool::Average) return {{y, inputs[0].dtype}};
  return {{y, inputs[0].dtype}, {y, o.kernel_h * o.kernel_w <= 255 ? DType::U8 : DType::I32}};
}

std::vector<Value> Pool2dOp::gradient(const Request& r) const {
  auto op = std::make_shared<Pool2dGradientOp>(kind_, options_, r.inputs[0].shape());
  if (kind_ == Pool::Max) return {apply_op(std::move(op), {r.gradients[0], r.outputs[1]})};
  return {apply_op(std::move(op), {r.gradients[0]})};
}

std::string Pool2dOp::attributes() const {
  const Pool2dOptions& o = options_;
  std::string text = fmt::format("{}x{} stride {}x{} padding {}x{}", o.kernel_h, o.kernel_w, o.stride_h, o.stride_w,
                                 o.padding_h, o.padding_w);
  if (o.dilation_h != 1 || o.dilation_w != 1) text += fmt::format(" dilation {}x{}", o.dilation_h, o.dilation_w);
  if (o.ceil_mode) text += " ceil";
  if (!o.count_include_pad) text += " without padding in the count";
  return text;
}

std::vector<Type> Pool2dGradientOp::infer(std::string_view, std::span<const Type> inputs) const {
  return {{input_, inputs[0].dtype}};
}

std::vector<Value> Pool2dGradientOp::gradient(const Request& r) const {
  if (kind_ == Pool::Max) return Op::gradient(r);
  return {average_pool2d(r.gradients[0], options_)};
}

Value max_pool2d(Value x, Pool2dOptions options) {
  return apply_op(std::make_shared<Pool2dOp>(Pool::Max, options), {x});
}

Value average_pool2d(Value x, Pool2dOptions options) {
  return apply_op(std::make_shared<Pool2dOp>(Pool::Average, options), {x});
}

Value global_average_pool2d(Value x) {
  check(x.shape().rank() == 4, "global_average_pool2d", "input is {}, expected (samples, channels, height, width)",
        x.shape().str());
  const std::int64_t h = x.shape()[2], w = x.shape()[3];
  return average_pool2d(x, {.kernel_h = h, .kernel_w = w, .stride_h = h, .stride_w = w});
}

}  // namespace lockstep

#include "lockstep/ops/conv2d.h"

#include <fmt/format.h>

#include "lockstep/core/error.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/window.h"

namespace lockstep {
namespace {

// Multiply-adds count as two; each output element needs one product per weight of its filter.
double conv_flops(const Shape& output, const Shape& weight) {
  return 2.0 * static_cast<double>(output.elements()) * static_cast<double>(weight[1] * weight[2] * weight[3]);
}

}  // namespace

std::vector<Type> Conv2dOp::infer(std::string_view path, std::span<const Type> inputs) const {
  const Shape &x = inputs[0].shape, &w = inputs[1].shape;
  const Conv2dOptions& o = options_;
  check(x.rank() == 4, name(), "{}: input is {}, expected (samples, channels, height, width)", path, x.str());
  check(w.rank() == 4, name(), "{}: weight is {}, expected (out, in / groups, height, width)", path, w.str());
  check(sum_type(inputs[0].dtype) == inputs[1].dtype, name(), "{}: input is {}, weight {}: {}", path, inputs[0].str(),
        inputs[1].str(), kTypesDiffer);
  check(
      o.stride_h > 0 && o.stride_w > 0 && o.dilation_h > 0 && o.dilation_w > 0 && o.padding_h >= 0 && o.padding_w >= 0,
      name(), "{}: stride and dilation must be positive, padding not negative: {}", path, attributes());
  check(o.groups > 0 && w[0] % o.groups == 0, name(), "{}: {} filters do not divide into {} groups", path, w[0],
        o.groups);
  check(x[1] == w[1] * o.groups, name(), "{}: input has {} channels, weight expects {}", path, x[1], w[1] * o.groups);
  if (has_bias(inputs.size())) {
    const Type bias{Shape{w[0]}, inputs[1].dtype};
    check(inputs[2] == bias, name(), "{}: bias is {}, expected {}", path, inputs[2].str(), bias.str());
  }
  const std::int64_t span_h = o.dilation_h * (w[2] - 1) + 1, span_w = o.dilation_w * (w[3] - 1) + 1;
  check(x[2] + 2 * o.padding_h >= span_h && x[3] + 2 * o.padding_w >= span_w, name(),
        "{}: padded input {}x{} is smaller than the filter's {}x{}", path, x[2] + 2 * o.padding_h,
        x[3] + 2 * o.padding_w, span_h, span_w);
  const std::int64_t h = window_count(x[2], w[2], o.stride_h, o.padding_h, o.dilation_h);
  const std::int64_t width = window_count(x[3], w[3], o.stride_w, o.padding_w, o.dilation_w);
  const Type y{Shape{x[0], w[0], h, width}, inputs[0].dtype};
  check(!epilogue_.residual || inputs.back() == y, name(), "{}: residual is {}, expected {}", path, inputs.back().str(),
        y.str());
  return {y};
}

std::vector<Value> Conv2dOp::gradient(const Request& r) const {
  const Value x = r.inputs[0], w = r.inputs[1];
  const Value dy = r.gradients[0];
  check(epilogue_ == Epilogue{}, name(), "gradients are written before fusion, but this op has the epilogue {}",
        epilogue_.str());
  std::vector<Value> result(r.inputs.size());
  const bool bias = has_bias(r.inputs.size()) && r.needed[2];
  if (r.needed[1]) {
    const auto d = x.graph().apply(std::make_shared<Conv2dBackwardWeightsOp>(options_, w.shape(), bias), {x, dy});
    result[1] = d[0];
    if (bias) result[2] = d[1];
  } else if (bias) {
    result[2] = channel_sum(dy);
  }
  if (r.needed[0]) result[0] = apply_op(std::make_shared<Conv2dBackwardDataOp>(options_, x.shape()), {dy, w});
  return result;
}

double Conv2dOp::flops(std::span<const Type> inputs, std::span<const Type> outputs) const {
  return conv_flops(outputs[0].shape, inputs[1].shape);
}

std::string Conv2dOp::attributes() const {
  const Conv2dOptions& o = options_;
  std::string text = fmt::format("stride {}x{} padding {}x{}", o.stride_h, o.stride_w, o.padding_h, o.padding_w);
  if (o.dilation_h != 1 || o.dilation_w != 1) text += fmt::format(" dilation {}x{}", o.dilation_h, o.dilation_w);
  if (o.groups != 1) text += fmt::format(" groups {}", o.groups);
  if (epilogue_ != Epilogue{}) text += fmt::format(" {}", epilogue_.str());
  return text;
}

std::vector<Type> Conv2dBackwardDataOp::infer(std::string_view, std::span<const Type> inputs) const {
  return {{input_, inputs[0].dtype}};
}

// dx is linear in dy and in the weight, so the gradient of dy is a convolution of dL/d dx.
std::vector<Value> Conv2dBackwardDataOp::gradient(const Request& r) const {
  const Value dy = r.inputs[0], w = r.inputs[1], g = r.gradients[0];
  std::vector<Value> result(2);
  if (r.needed[0]) result[0] = conv2d(g, w, {}, options_);
  if (r.needed[1]) {
    result[1] = apply_op(std::make_shared<Conv2dBackwardWeightsOp>(options_, w.shape(), false), {g, dy});
  }
  return result;
}

double Conv2dBackwardDataOp::flops(std::span<const Type> inputs, std::span<const Type>) const {
  return conv_flops(inputs[0].shape, inputs[1].shape);
}

std::vector<Type> Conv2dBackwardWeightsOp::infer(std::string_view, std::span<const Type> inputs) const {
  const DType type = sum_type(inputs[0].dtype);
  std::vector<Type> outputs{{weight_, type}};
  if (bias_) outputs.push_back({Shape{weight_[0]}, type});
  return outputs;
}

std::vector<Value> Conv2dBackwardWeightsOp::gradient(const Request& r) const {
  const Value x = r.inputs[0], dy = r.inputs[1], g = r.gradients[0], g_bias = bias_ ? r.gradients[1] : Value();
  std::vector<Value> result(2);
  if (r.needed[0] && g) result[0] = apply_op(std::make_shared<Conv2dBackwardDataOp>(options_, x.shape()), {dy, g});
  if (!r.needed[1]) return result;
  if (g) {
    result[1] = conv2d(x, g, g_bias, options_);
  } else if (g_bias) {
    result[1] = over_channels(g_bias, dy.type());
  }
  return result;
}

double Conv2dBackwardWeightsOp::flops(std::span<const Type> inputs, std::span<const Type> outputs) const {
  return conv_flops(inputs[1].shape, outputs[0].shape);
}

Value conv2d(Value x, Value weight, Value bias, Conv2dOptions options) {
  std::vector<Value> inputs{cast_for_product(x), weight};
  if (bias) inputs.push_back(bias);
  return apply_op(std::make_shared<Conv2dOp>(options), std::move(inputs));
}

}  // namespace lockstep

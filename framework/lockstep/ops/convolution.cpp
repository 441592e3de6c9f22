#include "lockstep/ops/convolution.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lockstep/core/error.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/window.h"

namespace lockstep {
namespace {

using OpNames = std::array<std::string_view, kMostAxes>;  // by the number of axes

constexpr OpNames kForward{"conv1d", "conv2d", "conv3d"};
constexpr OpNames kBackwardData{"conv1d_backward_data", "conv2d_backward_data", "conv3d_backward_data"};
constexpr OpNames kBackwardWeights{"conv1d_backward_weights", "conv2d_backward_weights", "conv3d_backward_weights"};

std::string_view name_among(const OpNames& names, const ConvolutionOptions& o) { return names[o.axes.size() - 1]; }

ConvolutionOptions with_known_axes(ConvolutionOptions o) {
  check(!o.axes.empty() && o.axes.size() <= kMostAxes, "convolution", "options have {} axes, expected 1 to {}",
        o.axes.size(), kMostAxes);
  return o;
}

// Multiply-adds count as two; each output element needs one product per weight of its filter.
double conv_flops(const Shape& output, const Shape& weight) {
  return 2.0 * static_cast<double>(output.elements()) * static_cast<double>(weight.tail().elements());
}

struct ConvolvedAxis {
  std::int64_t padded, span, windows;  // elements with the padding, elements under a filter, places for it
};

std::vector<ConvolvedAxis> convolved_axes(const ConvolutionOptions& o, const Shape& x, const Shape& weight) {
  std::vector<ConvolvedAxis> result;
  for (int i = 2; i < x.rank(); ++i) {
    const ConvolutionAxis& a = o.axes[static_cast<std::size_t>(i - 2)];
    result.push_back({x[i] + 2 * a.padding, a.dilation * (weight[i] - 1) + 1,
                      window_count(x[i], weight[i], a.stride, a.padding, a.dilation)});
  }
  return result;
}

std::string options_text(const ConvolutionOptions& options) {
  const auto& axes = options.axes;
  std::string text = fmt::format("stride {} padding {}", by_axis(axes, [](const auto& a) { return a.stride; }),
                                 by_axis(axes, [](const auto& a) { return a.padding; }));
  if (std::ranges::any_of(axes, [](const ConvolutionAxis& a) { return a.dilation != 1; })) {
    text += fmt::format(" dilation {}", by_axis(axes, [](const auto& a) { return a.dilation; }));
  }
  if (options.groups != 1) text += fmt::format(" groups {}", options.groups);
  return text;
}

}  // namespace

Conv2dOptions::operator ConvolutionOptions() const {
  return {.axes = {{stride_h, padding_h, dilation_h}, {stride_w, padding_w, dilation_w}}, .groups = groups};
}

ConvolutionOp::ConvolutionOp(ConvolutionOptions options, Epilogue epilogue)
    : options_(with_known_axes(std::move(options))), epilogue_(epilogue) {}

std::string_view ConvolutionOp::name() const { return name_among(kForward, options_); }

std::vector<Type> ConvolutionOp::infer(std::string_view path, std::span<const Type> inputs) const {
  const Shape &x = inputs[0].shape, &w = inputs[1].shape;
  const ConvolutionOptions& o = options_;
  const int axes = static_cast<int>(o.axes.size());
  check(x.rank() == axes + 2, name(), "{}: input is {}, expected (samples, channels, {})", path, x.str(),
        axis_names(axes));
  check(w.rank() == axes + 2, name(), "{}: weight is {}, expected (out, in / groups, {})", path, w.str(),
        axis_names(axes));
  check(sum_type(inputs[0].dtype) == inputs[1].dtype, name(), "{}: input is {}, weight {}: {}", path, inputs[0].str(),
        inputs[1].str(), kTypesDiffer);
  check(std::ranges::all_of(o.axes,
                            [](const ConvolutionAxis& a) { return a.stride > 0 && a.dilation > 0 && a.padding >= 0; }),
        name(), "{}: stride and dilation must be positive, padding not negative: {}", path, attributes());
  check(o.groups > 0 && w[0] % o.groups == 0, name(), "{}: {} filters do not divide into {} groups", path, w[0],
        o.groups);
  check(x[1] == w[1] * o.groups, name(), "{}: input has {} channels, weight expects {}", path, x[1], w[1] * o.groups);
  if (has_bias(inputs.size())) {
    const Type bias{Shape{w[0]}, inputs[1].dtype};
    check(inputs[2] == bias, name(), "{}: bias is {}, expected {}", path, inputs[2].str(), bias.str());
  }
  const std::vector<ConvolvedAxis> convolved = convolved_axes(o, x, w);
  check(std::ranges::all_of(convolved, [](const ConvolvedAxis& a) { return a.padded >= a.span; }), name(),
        "{}: padded input {} is smaller than the filter's {}", path,
        by_axis(convolved, [](const ConvolvedAxis& a) { return a.padded; }),
        by_axis(convolved, [](const ConvolvedAxis& a) { return a.span; }));
  std::vector<std::int64_t> sizes{x[0], w[0]};
  for (const ConvolvedAxis& a : convolved) sizes.push_back(a.windows);
  const Type y{Shape(std::move(sizes)), inputs[0].dtype};
  check(!epilogue_.residual || inputs.back() == y, name(), "{}: residual is {}, expected {}", path, inputs.back().str(),
        y.str());
  return {y};
}

std::vector<Value> ConvolutionOp::gradient(const Request& r) const {
  const Value x = r.inputs[0], w = r.inputs[1];
  const Value dy = r.gradients[0];
  check(epilogue_ == Epilogue{}, name(), "gradients are written before fusion, but this op has the epilogue {}",
        epilogue_.str());
  std::vector<Value> result(r.inputs.size());
  const bool bias = has_bias(r.inputs.size()) && r.needed[2];
  if (r.needed[1]) {
    const auto d = x.graph().apply(std::make_shared<ConvolutionBackwardWeightsOp>(options_, w.shape(), bias), {x, dy});
    result[1] = d[0];
    if (bias) result[2] = d[1];
  } else if (bias) {
    result[2] = channel_sum(dy);
  }
  if (r.needed[0]) result[0] = apply_op(std::make_shared<ConvolutionBackwardDataOp>(options_, x.shape()), {dy, w});
  return result;
}

double ConvolutionOp::flops(std::span<const Type> inputs, std::span<const Type> outputs) const {
  return conv_flops(outputs[0].shape, inputs[1].shape);
}

std::string ConvolutionOp::attributes() const {
  std::string text = options_text(options_);
  if (epilogue_ != Epilogue{}) text += fmt::format(" {}", epilogue_.str());
  return text;
}

ConvolutionBackwardDataOp::ConvolutionBackwardDataOp(ConvolutionOptions options, Shape input)
    : options_(with_known_axes(std::move(options))), input_(std::move(input)) {}

std::string_view ConvolutionBackwardDataOp::name() const { return name_among(kBackwardData, options_); }

std::string ConvolutionBackwardDataOp::attributes() const { return options_text(options_); }

std::vector<Type> ConvolutionBackwardDataOp::infer(std::string_view, std::span<const Type> inputs) const {
  return {{input_, inputs[0].dtype}};
}

// dx is linear in dy and in the weight, so the gradient of dy is a convolution of dL/d dx.
std::vector<Value> ConvolutionBackwardDataOp::gradient(const Request& r) const {
  const Value dy = r.inputs[0], w = r.inputs[1], g = r.gradients[0];
  std::vector<Value> result(2);
  if (r.needed[0]) result[0] = convolution(g, w, {}, options_);
  if (r.needed[1]) {
    result[1] = apply_op(std::make_shared<ConvolutionBackwardWeightsOp>(options_, w.shape(), false), {g, dy});
  }
  return result;
}

double ConvolutionBackwardDataOp::flops(std::span<const Type> inputs, std::span<const Type>) const {
  return conv_flops(inputs[0].shape, inputs[1].shape);
}

ConvolutionBackwardWeightsOp::ConvolutionBackwardWeightsOp(ConvolutionOptions options, Shape weight, bool bias)
    : options_(with_known_axes(std::move(options))), weight_(std::move(weight)), bias_(bias) {}

std::string_view ConvolutionBackwardWeightsOp::name() const { return name_among(kBackwardWeights, options_); }

std::string ConvolutionBackwardWeightsOp::attributes() const { return options_text(options_); }

std::vector<Type> ConvolutionBackwardWeightsOp::infer(std::string_view, std::span<const Type> inputs) const {
  const DType type = sum_type(inputs[0].dtype);
  std::vector<Type> outputs{{weight_, type}};
  if (bias_) outputs.push_back({Shape{weight_[0]}, type});
  return outputs;
}

std::vector<Value> ConvolutionBackwardWeightsOp::gradient(const Request& r) const {
  const Value x = r.inputs[0], dy = r.inputs[1], g = r.gradients[0], g_bias = bias_ ? r.gradients[1] : Value();
  std::vector<Value> result(2);
  if (r.needed[0] && g) {
    result[0] = apply_op(std::make_shared<ConvolutionBackwardDataOp>(options_, x.shape()), {dy, g});
  }
  if (!r.needed[1]) return result;
  if (g) {
    result[1] = convolution(x, g, g_bias, options_);
  } else if (g_bias) {
    result[1] = over_channels(g_bias, dy.type());
  }
  return result;
}

double ConvolutionBackwardWeightsOp::flops(std::span<const Type> inputs, std::span<const Type> outputs) const {
  return conv_flops(inputs[1].shape, outputs[0].shape);
}

Value convolution(Value x, Value weight, Value bias, ConvolutionOptions options) {
  if (options.axes.empty()) options.axes.resize(static_cast<std::size_t>(std::max(weight.shape().rank() - 2, 0)));
  std::vector<Value> inputs{cast_for_product(x), weight};
  if (bias) inputs.push_back(bias);
  return apply_op(std::make_shared<ConvolutionOp>(std::move(options)), std::move(inputs));
}

Value conv2d(Value x, Value weight, Value bias, Conv2dOptions options) { return convolution(x, weight, bias, options); }

}  // namespace lockstep

#include "lockstep/ops/row_norm.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/shape_axes.h"

namespace lockstep {
namespace {

// One value per row.
Shape statistics_shape(const Shape& x, const RowNormOptions& options) {
  if (options.groups > 0) return {x[0], options.groups};
  return Shape(std::vector<std::int64_t>(x.dims().begin(), x.dims().end() - options.dims));
}

// Of weight and bias.
Shape parameter_shape(const Shape& x, const RowNormOptions& options) {
  if (options.groups > 0) return {x[1]};
  return Shape(std::vector<std::int64_t>(x.dims().end() - options.dims, x.dims().end()));
}

std::string norm_attributes(const RowNormOptions& options) {
  if (options.groups > 0) return formatted("{} groups", options.groups);
  return formatted("over {} dimension{}", options.dims, options.dims == 1 ? "" : "s");
}

// The values with which the gradients of a norm are written: for x with these statistics, as RowNormOp returns them. A
// value "in rows" has the shape of x; in group norm it is (N, groups, size of a row).
struct NormRows {
  RowNormOptions options;
  Value x, inverse, mean;  // the mean is empty without `centred`

  int dims() const { return options.groups > 0 ? 1 : options.dims; }
  std::int64_t size() const { return RowView(x.shape(), options).size; }
  Value in_rows(Value v) const {
    return options.groups > 0 ? reshape(v, Shape{x.shape()[0], options.groups, size()}) : v;
  }
  Value as_x(Value v) const { return options.groups > 0 ? reshape(v, x.shape()) : v; }

  // A parameter in a shape that broadcasts to that of x, and a value of that of x summed to the parameter's shape.
  Shape broadcast_parameter() const {
    if (options.groups == 0) return parameter_shape(x.shape(), options);
    std::vector<std::int64_t> shape(static_cast<std::size_t>(x.shape().rank()) - 1, 1);
    shape[0] = x.shape()[1];
    return Shape(std::move(shape));
  }
  Value over_x(Value parameter) const {
    return options.groups > 0 ? reshape(parameter, broadcast_parameter()) : parameter;
  }
  Value summed(Value v) const {
    const Value total = sum_to(v, broadcast_parameter());
    return options.groups > 0 ? reshape(total, Shape{x.shape()[1]}) : total;
  }

  // Broadcasts a statistic to rows.
  Value over_rows(Value statistic) const {
    std::vector<std::int64_t> shape = statistic.shape().dims();
    shape.insert(shape.end(), static_cast<std::size_t>(dims()), 1);
    return reshape(statistic, Shape(std::move(shape)));
  }
  Value scale() const { return over_rows(inverse); }
  Value normalised() const {  // in rows
    const Value rows = in_rows(x);
    return (mean ? rows - over_rows(mean) : rows) * scale();
  }
  Value row_mean(Value rows) const {
    std::vector<int> axes;
    for (int i = -dims(); i < 0; ++i) axes.push_back(i);
    return lockstep::mean(rows, std::move(axes), true);
  }
  // The gradient by x, in rows, of the sum of g * normalised().
  Value pulled_back(Value g) const {
    std::vector<Value> inputs{in_rows(x), cast(g, x.dtype()), inverse};
    if (mean) inputs.push_back(mean);
    const RowNormOptions plain{.centred = options.centred, .dims = dims(), .epsilon = options.epsilon};
    return x.graph().apply(std::make_shared<RowNormGradientOp>(plain, false), std::move(inputs))[0];
  }
};

void require_parameter(const RowNormOp& op, std::string_view path, const Type& x, const Type& parameter,
                       std::string_view what) {
  const Type expected{parameter_shape(x.shape, op.options()), sum_type(x.dtype)};
  check(parameter == expected, op.name(), "{}: {} is {}, expected {} for an input {}", path, what, parameter.str(),
        expected.str(), x.str());
}

Value plus(Value a, Value b) { return a ? a + b : b; }

}  // namespace

RowView::RowView(const Shape& shape, const RowNormOptions& options) : groups(options.groups) {
  if (groups > 0) {
    rows = shape[0] * groups;
    spatial = shape.tail().tail().elements();
    row_channels = shape[1] / groups;
    size = row_channels * spatial;
    return;
  }
  for (int i = 0; i < shape.rank(); ++i) (i < shape.rank() - options.dims ? rows : size) *= shape[i];
}

std::string_view RowNormOp::name() const {
  if (options_.groups > 0) return "group_norm";
  return options_.centred ? "layer_norm" : "rms_norm";
}

std::string_view RowNormGradientOp::name() const {
  if (options_.groups > 0) return "group_norm_gradient";
  return options_.centred ? "layer_norm_gradient" : "rms_norm_gradient";
}

std::vector<Type> RowNormOp::infer(std::string_view path, std::span<const Type> inputs) const {
  const Type& x = inputs[0];
  const int dims = options_.dims, rank = x.shape.rank();
  check(is_floating(x.dtype), name(), "{}: input is {}, expected a floating type", path, x.str());
  if (options_.groups > 0) {
    check(rank >= 2, name(), "{}: input is {}, expected (samples, channels, ...)", path, x.shape.str());
    check(x.shape[1] % options_.groups == 0, name(), "{}: {} channels do not divide into {} groups", path, x.shape[1],
          options_.groups);
  } else {
    check(dims >= 1 && dims <= rank, name(), "{}: input is {}, expected at least {} dimension{}", path, x.shape.str(),
          dims, dims == 1 ? "" : "s");
  }
  if (inputs.size() > 1) require_parameter(*this, path, x, inputs[1], "weight");
  if (inputs.size() > 2) require_parameter(*this, path, x, inputs[2], "bias");
  const Type statistics{statistics_shape(x.shape, options_), sum_type(x.dtype)};
  return options_.centred ? std::vector<Type>{x, statistics, statistics} : std::vector<Type>{x, statistics};
}

// The statistics have gradients too, where the gradient below is differentiated again: with v = (x - mean) inverse,
// d inverse / dx = -inverse^2 v / size and d mean / dx = 1 / size.
std::vector<Value> RowNormOp::gradient(const Request& r) const {
  const Value x = r.inputs[0];
  const NormRows rows{options_, x, r.outputs[1], options_.centred ? r.outputs[2] : Value()};
  const double size = static_cast<double>(rows.size());
  std::vector<Value> result(r.inputs.size());
  Value dx;
  if (r.gradients[0]) {
    std::vector<Value> inputs{x, r.gradients[0], rows.inverse};
    if (rows.mean) inputs.push_back(rows.mean);
    if (r.inputs.size() > 1) inputs.push_back(r.inputs[1]);
    result = x.graph().apply(std::make_shared<RowNormGradientOp>(options_, r.inputs.size() > 2), std::move(inputs));
    dx = result[0];
  }
  if (r.gradients[1]) {
    const Value factor = square(rows.scale()) * rows.over_rows(r.gradients[1]) * (-1 / size);
    dx = plus(dx, rows.as_x(rows.normalised() * factor));
  }
  if (options_.centred && r.gradients[2]) {
    const Value by_mean = rows.over_rows(r.gradients[2]) * (1 / size);
    dx = plus(dx, rows.as_x(broadcast_to(by_mean, rows.in_rows(x).shape())));
  }
  result[0] = cast(dx, x.dtype());
  return result;
}

double RowNormOp::flops(std::span<const Type> inputs, std::span<const Type>) const {
  return (options_.centred ? 7 : 5) * static_cast<double>(inputs[0].shape.elements());
}

std::string RowNormOp::attributes() const { return norm_attributes(options_); }

std::vector<Type> RowNormGradientOp::infer(std::string_view, std::span<const Type> inputs) const {
  std::vector<Type> outputs{inputs[0]};
  const std::size_t weight = weight_input();
  if (inputs.size() > weight) outputs.insert(outputs.end(), bias_ ? 2 : 1, inputs[weight]);
  return outputs;
}

// With v = (x - mean) inverse, a = dy weight and P u = u - mean(u) - v mean(u v) (RMS norm: without mean(u)), the op is
// dx = inverse P a, dweight = sum over rows of dy v, dbias = sum over rows of dy. P is its own transpose. For gradients
// g of dx, h of dweight and b of dbias, per row:
//   by dy: weight (inverse P g) + h v + b; by weight: sum over rows of dy (inverse P g);
//   by x: by way of v, inverse P (h dy - inverse (g mean(a v) + a mean(g v))), and by way of the factor inverse,
//         -inverse v mean(g dx), as d inverse / dx = -inverse^2 v / size.
// The gradient by x is the whole one, also by way of the statistics, which therefore get none.
std::vector<Value> RowNormGradientOp::gradient(const Request& r) const {
  const bool has_weight = r.inputs.size() > weight_input();
  const Value x = r.inputs[0], dy = r.inputs[1];
  const NormRows rows{options_, x, r.inputs[2], options_.centred ? r.inputs[3] : Value()};
  const Value weight = has_weight ? rows.over_x(r.inputs[weight_input()]) : Value();
  const Value g = r.gradients[0], h = has_weight && r.gradients[1] ? rows.over_x(r.gradients[1]) : Value();
  const Value b = has_weight && bias_ && r.gradients[2] ? rows.over_x(r.gradients[2]) : Value();
  const Value v = rows.normalised(), projected = g ? rows.as_x(rows.pulled_back(rows.in_rows(g))) : Value();
  std::vector<Value> result(r.inputs.size());
  if (r.needed[0]) {
    Value by_normalised = h ? rows.in_rows(h * dy) : Value(), by_inverse;
    if (g) {
      const Value a = rows.in_rows(has_weight ? dy * weight : dy), g_rows = rows.in_rows(g);
      const Value mixed = g_rows * rows.row_mean(a * v) + a * rows.row_mean(g_rows * v);
      by_normalised = plus(by_normalised, -(rows.scale() * mixed));
      by_inverse = v * (rows.scale() * rows.row_mean(g_rows * rows.in_rows(r.outputs[0])));
    }
    Value dx = by_normalised ? rows.pulled_back(by_normalised) : Value();
    if (by_inverse) dx = dx - by_inverse;
    if (dx) result[0] = cast(rows.as_x(dx), x.dtype());
  }
  if (r.needed[1]) {
    Value by_dy;
    if (g) by_dy = has_weight ? weight * projected : projected;
    if (h) by_dy = plus(by_dy, h * rows.as_x(v));
    if (b) by_dy = plus(by_dy, broadcast_to(b, x.shape()));
    result[1] = cast(by_dy, dy.dtype());
  }
  if (has_weight && r.needed[weight_input()] && g) {
    const Value parameter = r.inputs[weight_input()];
    result[weight_input()] = cast(rows.summed(dy * projected), parameter.dtype());
  }
  return result;
}

double RowNormGradientOp::flops(std::span<const Type> inputs, std::span<const Type> outputs) const {
  return (outputs.size() > 1 ? 14 : 9) * static_cast<double>(inputs[0].shape.elements());
}

std::string RowNormGradientOp::attributes() const { return norm_attributes(options_); }

namespace {

Value row_norm(RowNormOptions options, Value x, Value weight, Value bias) {
  std::vector<Value> inputs{x};
  if (weight) inputs.push_back(weight);
  if (bias) inputs.push_back(bias);
  const auto op = std::make_shared<RowNormOp>(options);
  check(weight || !bias, op->name(), "{}: a bias is given without a weight, expected both or a weight alone",
        axes::path(x));
  return x.graph().apply(op, std::move(inputs))[0];
}

Value channel_norm(std::string_view name, Value x, std::int64_t groups, Value weight, Value bias, double epsilon) {
  const std::string path = axes::path(x);
  const RowNormOptions options{.groups = groups, .epsilon = epsilon};
  const Value y = row_norm(options, x, weight, bias);
  check(RowView(x.shape(), options).size != 1 || !x.graph().training(), name,
        "{}: input is {}, one value for each group of channels, whose variance is 0, so that nothing would be learned; "
        "expected at least 2 values in training",
        path, x.shape().str());
  return y;
}

}  // namespace

Value layer_norm(Value x, int dims, Value weight, Value bias, double epsilon) {
  return row_norm({.dims = dims, .epsilon = epsilon}, x, weight, bias);
}

Value rms_norm(Value x, int dims, Value weight, double epsilon) {
  return row_norm({.centred = false, .dims = dims, .epsilon = epsilon}, x, weight, {});
}

Value group_norm(Value x, std::int64_t groups, Value weight, Value bias, double epsilon) {
  check(groups >= 1, "group_norm", "{}: the number of groups is {}, expected at least 1", axes::path(x), groups);
  return channel_norm("group_norm", x, groups, weight, bias, epsilon);
}

Value instance_norm(Value x, Value weight, Value bias, double epsilon) {
  const Shape& shape = x.shape();
  const std::string path = axes::path(x);
  check(shape.rank() >= 3 && shape[1] > 0, "instance_norm",
        "{}: input is {}, expected (samples, channels, ...) with positions", path, shape.str());
  return channel_norm("instance_norm", x, shape[1], weight, bias, epsilon);
}

}  // namespace lockstep

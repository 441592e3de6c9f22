#include "lockstep/ops/pool.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/ops/shape_axes.h"
#include "lockstep/ops/window.h"

namespace lockstep {
namespace {

std::string_view pool_name(Pool kind, const PoolOptions& o) {
  constexpr std::string_view kMax[] = {"max_pool1d", "max_pool2d", "max_pool3d"};
  constexpr std::string_view kAverage[] = {"average_pool1d", "average_pool2d", "average_pool3d"};
  return (kind == Pool::Max ? kMax : kAverage)[o.axes.size() - 1];
}

std::string_view pool_gradient_name(Pool kind, const PoolOptions& o) {
  constexpr std::string_view kMax[] = {"max_pool1d_gradient", "max_pool2d_gradient", "max_pool3d_gradient"};
  constexpr std::string_view kAverage[] = {"average_pool1d_gradient", "average_pool2d_gradient",
                                           "average_pool3d_gradient"};
  return (kind == Pool::Max ? kMax : kAverage)[o.axes.size() - 1];
}

PoolOptions with_known_axes(PoolOptions o) {
  check(!o.axes.empty() && o.axes.size() <= kMostAxes, "pool", "options have {} axes, expected 1 to {}", o.axes.size(),
        kMostAxes);
  return o;
}

// One number of each axis: "3x3".
std::string numbers(const PoolOptions& o, std::int64_t PoolAxis::*member) {
  return by_axis(o.axes, [member](const PoolAxis& a) { return a.*member; });
}

std::int64_t padded_size(const PoolAxis& a, std::int64_t in) { return in + 2 * a.padding; }
std::int64_t window_span(const PoolAxis& a) { return a.dilation * (a.kernel - 1) + 1; }

std::string options_text(const PoolOptions& o) {
  std::string text = fmt::format("{} stride {} padding {}", numbers(o, &PoolAxis::kernel),
                                 numbers(o, &PoolAxis::stride), numbers(o, &PoolAxis::padding));
  if (std::ranges::any_of(o.axes, [](const PoolAxis& a) { return a.dilation != 1; })) {
    text += fmt::format(" dilation {}", numbers(o, &PoolAxis::dilation));
  }
  if (o.ceil_mode) text += " ceil";
  if (!o.count_include_pad) text += " without padding in the count";
  return text;
}

}  // namespace

Pool2dOptions::operator PoolOptions() const {
  return {.axes = {{kernel_h, stride_h, padding_h, dilation_h}, {kernel_w, stride_w, padding_w, dilation_w}},
          .ceil_mode = ceil_mode,
          .count_include_pad = count_include_pad};
}

PoolOp::PoolOp(Pool kind, PoolOptions options) : kind_(kind), options_(with_known_axes(std::move(options))) {}

std::string_view PoolOp::name() const { return pool_name(kind_, options_); }

std::vector<Type> PoolOp::infer(std::string_view path, std::span<const Type> inputs) const {
  const Shape& x = inputs[0].shape;
  const PoolOptions& o = options_;
  const int axes = static_cast<int>(o.axes.size());
  const auto all = [&](auto holds) { return std::ranges::all_of(o.axes, holds); };
  check(x.rank() == axes + 2, name(), "{}: input is {}, expected (samples, channels, {})", path, x.str(),
        axis_names(axes));
  check(all([](const PoolAxis& a) { return a.kernel > 0 && a.stride > 0 && a.dilation > 0; }), name(),
        "{}: kernel, stride and dilation must be positive: {}", path, attributes());
  check(kind_ == Pool::Max || all([](const PoolAxis& a) { return a.dilation == 1; }), name(),
        "{}: dilation is {}, expected {}: only max pooling has one", path, numbers(o, &PoolAxis::dilation),
        by_axis(std::vector<std::int64_t>(o.axes.size(), 1)));
  check(all([](const PoolAxis& a) { return a.padding >= 0 && a.padding * 2 <= a.kernel; }), name(),
        "{}: padding {} must be at most half of the kernel {}", path, numbers(o, &PoolAxis::padding),
        numbers(o, &PoolAxis::kernel));
  const std::vector<std::int64_t> in(x.dims().begin() + 2, x.dims().end());
  std::vector<std::int64_t> sizes{x[0], x[1]};
  std::int64_t window = 1;
  for (std::size_t i = 0; i < o.axes.size(); ++i) {
    const PoolAxis& a = o.axes[i];
    // In ceil mode the last window, which may be the only one, may reach over the end.
    check(padded_size(a, in[i]) + (o.ceil_mode ? a.stride - 1 : 0) >= window_span(a), name(),
          "{}: input {} is smaller than the window {}", path, by_axis(in), numbers(o, &PoolAxis::kernel));
    sizes.push_back(window_count(in[i], a.kernel, a.stride, a.padding, a.dilation, o.ceil_mode));
    window *= a.kernel;
  }
  const Shape y(std::move(sizes));
  if (kind_ == Pool::Average) return {{y, inputs[0].dtype}};
  return {{y, inputs[0].dtype}, {y, window <= 255 ? DType::U8 : DType::I32}};
}

std::vector<Value> PoolOp::gradient(const Request& r) const {
  auto op = std::make_shared<PoolGradientOp>(kind_, options_, r.inputs[0].shape());
  if (kind_ == Pool::Max) return {apply_op(std::move(op), {r.gradients[0], r.outputs[1]})};
  return {apply_op(std::move(op), {r.gradients[0]})};
}

std::string PoolOp::attributes() const { return options_text(options_); }

PoolGradientOp::PoolGradientOp(Pool kind, PoolOptions options, Shape input)
    : kind_(kind), options_(with_known_axes(std::move(options))), input_(std::move(input)) {}

std::string_view PoolGradientOp::name() const { return pool_gradient_name(kind_, options_); }

std::string PoolGradientOp::attributes() const { return options_text(options_); }

std::vector<Type> PoolGradientOp::infer(std::string_view, std::span<const Type> inputs) const {
  return {{input_, inputs[0].dtype}};
}

std::vector<Value> PoolGradientOp::gradient(const Request& r) const {
  if (kind_ == Pool::Max) return Op::gradient(r);
  return {pool(Pool::Average, r.gradients[0], options_)};
}

Value pool(Pool kind, Value x, PoolOptions options) {
  return apply_op(std::make_shared<PoolOp>(kind, std::move(options)), {x});
}

Value max_pool2d(Value x, Pool2dOptions options) { return pool(Pool::Max, x, options); }
Value average_pool2d(Value x, Pool2dOptions options) { return pool(Pool::Average, x, options); }

Value global_average_pool(Value x) {
  const int spatial = x.shape().rank() - 2;
  check(spatial >= 1 && spatial <= kMostAxes, "global_average_pool",
        "{}: input is {}, expected (samples, channels) and 1 to {} spatial axes", axes::path(x), x.shape().str(),
        kMostAxes);
  PoolOptions options;
  for (int i = 0; i < spatial; ++i) {
    const std::int64_t size = x.shape()[i + 2];
    options.axes.push_back({.kernel = size, .stride = size});
  }
  return pool(Pool::Average, x, std::move(options));
}

Value global_average_pool2d(Value x) {
  check(x.shape().rank() == 4, "global_average_pool2d", "{}: input is {}, expected (samples, channels, height, width)",
        axes::path(x), x.shape().str());
  return global_average_pool(x);
}

}  // namespace lockstep

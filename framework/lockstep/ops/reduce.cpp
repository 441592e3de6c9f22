#include "lockstep/ops/reduce.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reshape.h"

namespace lockstep {
namespace {

// dy with size 1 in the reduced axes of x, so that it broadcasts to x.
Value as_kept(Value dy, const Shape& x, const std::vector<int>& axes) {
  const Shape kept = kept_shape(x, axes);
  return dy.shape() == kept ? dy : reshape(dy, kept);
}

std::int64_t reduced_elements(const Shape& x, const std::vector<int>& axes) {
  std::int64_t n = 1;
  for (const int axis : axes) n *= x[axis];
  return n;
}

// 1 where x is its extreme, else 0.
Value is_extreme(Value x, Value extreme, ReduceOp::Kind kind) {
  using namespace pointwise;
  Expression e;
  const Scalar a = e.input(0), b = e.input(1);
  const Scalar distance = kind == ReduceOp::Kind::Max ? b - a : a - b;  // positive, or 0; NaN for equal infinities
  e.set_result(apply("select", {distance, e.constant(0), e.constant(1)}));
  const std::vector<Value> inputs{x, extreme};
  return pointwise_value(e, inputs);
}

Value reduce(ReduceOp::Kind kind, Value x, const Axes& axes, bool keep) {
  using enum ReduceOp::Kind;
  const bool adds = kind == Sum || kind == Mean || kind == LogSumExp;
  const std::string_view name = ReduceOp(kind, {}, keep).name();
  std::vector<int> reduced = axes.of(name, x);
  return apply_op(std::make_shared<ReduceOp>(kind, std::move(reduced), keep),
                  {adds ? cast(x, sum_type(x.dtype())) : x});
}

}  // namespace

std::string_view ReduceOp::name() const {
  switch (kind_) {
    case Kind::Max:
      return "amax";
    case Kind::Min:
      return "amin";
    case Kind::LogSumExp:
      return "logsumexp";
    case Kind::Sum:
    case Kind::Mean:
      break;
  }
  return "sum";
}

std::string ReduceOp::attributes() const {
  std::string axes;
  for (const int axis : axes_) axes += formatted(" {}", axis);
  return formatted("{} over{}", kind_ == Kind::Mean ? "mean" : name(), axes);
}

std::vector<Type> ReduceOp::infer(std::string_view path, std::span<const Type> inputs) const {
  const Type& x = inputs[0];
  check(is_floating(x.dtype), name(), "{}: input is {}, expected a floating type", path, x.str());
  for (const int axis : axes_)
    check(axis >= 0 && axis < x.shape.rank(), name(), "{}: axis is {}, expected 0 to {} for an input {}", path, axis,
          x.shape.rank() - 1, x.str());
  return {{keep_ ? kept_shape(x.shape, axes_) : reduced_shape(x.shape, axes_), x.dtype}};
}

double ReduceOp::flops(std::span<const Type> inputs, std::span<const Type>) const {
  return static_cast<double>(inputs[0].shape.elements());
}

std::vector<Value> ReduceOp::gradient(const Request& r) const {
  const Value x = r.inputs[0];
  const Shape shape = x.shape();
  const double n = static_cast<double>(reduced_elements(shape, axes_));
  const double factor = kind_ == Kind::Mean && n > 0 ? 1.0 / n : 1.0;
  const Value dy = as_kept(r.gradients[0], shape, axes_);
  switch (kind_) {
    case Kind::Sum:
    case Kind::Mean:
      if (dy.shape().elements() == 1) return {apply_op(std::make_shared<ExpandOp>(shape, factor), {dy})};
      return {broadcast_to(scale_shift(dy, factor), shape)};
    case Kind::Max:
    case Kind::Min: {
      const Value chosen = is_extreme(x, as_kept(r.outputs[0], shape, axes_), kind_);
      return {cast(chosen * (dy / sum(chosen, axes_, true)), x.dtype())};
    }
    case Kind::LogSumExp:
      break;
  }
  return {exp(x - as_kept(r.outputs[0], shape, axes_)) * dy};
}

std::vector<Type> ExpandOp::infer(std::string_view path, std::span<const Type> inputs) const {
  check(inputs[0].shape.elements() == 1, name(), "{}: input is {}, expected a scalar", path, inputs[0].str());
  return {{shape_, inputs[0].dtype}};
}

std::vector<Value> ExpandOp::gradient(const Request& r) const {
  const Value total = scale_shift(sum(r.gradients[0]), factor_);
  const Shape shape = r.inputs[0].shape();
  return {shape == total.shape() ? total : reshape(total, shape)};
}

std::vector<Type> ChannelSumOp::infer(std::string_view path, std::span<const Type> inputs) const {
  check(inputs[0].shape.rank() >= 2, name(), "{}: input is {}, expected (samples, channels, ...)", path,
        inputs[0].str());
  return {{Shape{inputs[0].shape[1]}, sum_type(inputs[0].dtype)}};
}

std::vector<Value> ChannelSumOp::gradient(const Request& r) const {
  return {over_channels(r.gradients[0], r.inputs[0].type())};
}

Value sum(Value x, const Axes& axes, bool keep) { return reduce(ReduceOp::Kind::Sum, x, axes, keep); }
Value mean(Value x, const Axes& axes, bool keep) { return reduce(ReduceOp::Kind::Mean, x, axes, keep); }
Value amax(Value x, const Axes& axes, bool keep) { return reduce(ReduceOp::Kind::Max, x, axes, keep); }
Value amin(Value x, const Axes& axes, bool keep) { return reduce(ReduceOp::Kind::Min, x, axes, keep); }
Value logsumexp(Value x, const Axes& axes, bool keep) { return reduce(ReduceOp::Kind::LogSumExp, x, axes, keep); }
Value variance(Value x, const Axes& axes, double correction, bool keep) {
  const std::vector<int> reduced = axes.of("variance", x);
  const Value wide = cast(x, sum_type(x.dtype()));
  const auto n = static_cast<double>(reduced_elements(x.shape(), reduced));
  const Value squares = sum(square(wide - mean(wide, reduced, true)), reduced, keep);
  return squares * (1 / std::max(n - correction, 0.0));
}
Value fill(Graph& graph, Type type, double value) {
  return graph.apply(std::make_shared<FillOp>(std::move(type), value), {})[0];
}
Value over_channels(Value x, const Type& type) {
  std::vector<std::int64_t> dims(static_cast<std::size_t>(type.shape.rank()) - 1, 1);
  dims[0] = type.shape[1];
  return broadcast_to(reshape(cast(x, type.dtype), Shape(std::move(dims))), type.shape);
}
Value channel_sum(Value x) { return apply_op(std::make_shared<ChannelSumOp>(), {x}); }

}  // namespace lockstep

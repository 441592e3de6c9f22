#include "lockstep/ops/reduce.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reshape.h"

namespace lockstep {

std::vector<Type> SumOp::infer(std::string_view, std::span<const Type> inputs) const {
  return {{Shape{}, inputs[0].dtype}};
}

std::vector<Value> SumOp::gradient(const Request& r) const {
  const Shape& shape = r.inputs[0].shape();
  const double n = static_cast<double>(shape.elements());
  return {apply_op(std::make_shared<ExpandOp>(shape, mean_ && n > 0 ? 1.0 / n : 1.0), {r.gradients[0]})};
}

std::vector<Type> ExpandOp::infer(std::string_view path, std::span<const Type> inputs) const {
  check(inputs[0].shape.elements() == 1, name(), "{}: input is {}, expected a scalar", path, inputs[0].str());
  return {{shape_, inputs[0].dtype}};
}

std::vector<Value> ExpandOp::gradient(const Request& r) const { return {scale_shift(sum(r.gradients[0]), factor_)}; }

std::vector<Type> ChannelSumOp::infer(std::string_view path, std::span<const Type> inputs) const {
  check(inputs[0].shape.rank() >= 2, name(), "{}: input is {}, expected (samples, channels, ...)", path,
        inputs[0].str());
  return {{Shape{inputs[0].shape[1]}, sum_type(inputs[0].dtype)}};
}

std::vector<Value> ChannelSumOp::gradient(const Request& r) const {
  return {over_channels(r.gradients[0], r.inputs[0].type())};
}

Value sum(Value x) { return apply_op(std::make_shared<SumOp>(false), {cast(x, sum_type(x.dtype()))}); }
Value mean(Value x) { return apply_op(std::make_shared<SumOp>(true), {cast(x, sum_type(x.dtype()))}); }
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

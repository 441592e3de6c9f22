#include "lockstep/ops/pointwise/pointwise_op.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/shape_axes.h"

namespace lockstep {

using pointwise::Expression;
using pointwise::Scalar;

Shape broadcast_shape(std::string_view op, std::string_view path, std::span<const Type> inputs) {
  std::vector<std::int64_t> dims;  // innermost first
  for (const Type& t : inputs) {
    for (int i = 0; i < t.shape.rank(); ++i) {
      const std::int64_t size = t.shape[t.shape.rank() - 1 - i];
      const auto k = static_cast<std::size_t>(i);
      if (k == dims.size()) dims.push_back(size);
      if (dims[k] == 1) dims[k] = size;
      if (size != 1 && size != dims[k]) {
        fail(op, "{}: operands are {} and {}, expected equal shapes, or dimensions of 1 where they differ", path,
             inputs[0].str(), t.str());
      }
    }
  }
  std::ranges::reverse(dims);
  return Shape(std::move(dims));
}

std::vector<Type> PointwiseOp::infer(std::string_view path, std::span<const Type> inputs) const {
  check(static_cast<int>(inputs.size()) == expression_.inputs() && !inputs.empty(), label_,
        "{}: got {} operands, expected {}", path, inputs.size(), expression_.inputs());
  check(is_floating(inputs[0].dtype), label_, "{}: input is {}, expected a floating type", path, inputs[0].str());
  for (const Type& t : inputs) {
    check(t.dtype == inputs[0].dtype, label_, "{}: operands are {} and {}: {}", path, inputs[0].str(), t.str(),
          kTypesDiffer);
  }
  std::vector<Type> all(inputs.begin(), inputs.end());
  if (shape_) all.push_back({*shape_, inputs[0].dtype});
  return {{broadcast_shape(label_, path, all), inputs[0].dtype}};
}

std::vector<Value> PointwiseOp::gradient(const Request& r) const {
  const int n = static_cast<int>(r.inputs.size());
  std::vector<Value> values(r.inputs.begin(), r.inputs.end());
  values.push_back(r.outputs[0]);
  values.push_back(r.gradients[0]);
  std::vector<Value> result(r.inputs.size());
  for (int k = 0; k < n; ++k) {
    const auto i = static_cast<std::size_t>(k);
    if (!r.needed[i]) continue;
    Expression expression;
    std::vector<Scalar> inputs;
    for (int j = 0; j < n; ++j) inputs.push_back(expression.input(j));
    const Scalar y = expression.input(n), dy = expression.input(n + 1);
    const Scalar d = differentiate(expression_, inputs, y, dy, k);
    if (!d) continue;
    expression.set_result(d);
    const Value gradient = d.term() == dy.term() ? r.gradients[0] : pointwise_value(expression, values);
    result[i] = sum_to(gradient, r.inputs[i].shape());
  }
  return result;
}

double PointwiseOp::flops(std::span<const Type>, std::span<const Type> outputs) const {
  const auto applied = std::ranges::count(expression_.terms(), pointwise::Term::Kind::Apply, &pointwise::Term::kind);
  return static_cast<double>(applied) * static_cast<double>(outputs[0].shape.elements());
}

const PointwiseOp* as_pointwise(const Node& node, std::string_view function) {
  const auto* op = dynamic_cast<const PointwiseOp*>(node.op.get());
  return op != nullptr && op->is(function) ? op : nullptr;
}

Value pointwise_value(const Expression& expression, std::span<const Value> inputs) {
  std::vector<int> kept;
  Expression compact = expression.compact(kept);
  if (kept.empty()) {  // a constant
    std::vector<Type> types;
    for (const Value v : inputs) types.push_back(v.type());
    return fill(inputs[0].graph(), {broadcast_shape("pointwise", "", types), inputs[0].dtype()}, compact.at({}));
  }
  std::vector<Value> values;
  for (const int k : kept) values.push_back(inputs[static_cast<std::size_t>(k)]);
  return apply_op(std::make_shared<PointwiseOp>(std::move(compact)), std::move(values));
}

Value sum_to(Value x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const std::string path = axes::path(x);
  const std::vector<Type> both{x.type(), {shape, x.dtype()}};
  check(broadcast_shape("sum_to", path, both) == x.shape(), "sum_to", "{}: {} does not broadcast to {}", path,
        shape.str(), x.type().str());
  std::vector<int> repeated;
  const int first = x.shape().rank() - shape.rank();
  for (int i = 0; i < x.shape().rank(); ++i) {
    if (i < first || (shape[i - first] == 1 && x.shape()[i] != 1)) repeated.push_back(i);
  }
  const Value total = repeated.empty() ? x : cast(sum(x, repeated, true), x.dtype());
  return total.shape() == shape ? total : reshape(total, shape);
}

Value broadcast_to(Value x, const Shape& shape) {
  if (x.shape() == shape) return x;
  Expression copy;
  const Scalar a = copy.input(0);
  copy.set_result(copy.apply(pointwise::function("copy"), std::span(&a, 1)));
  return apply_op(std::make_shared<PointwiseOp>(std::move(copy), shape), {x});
}

}  // namespace lockstep

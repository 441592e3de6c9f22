#include "lockstep/ops/loss_weights.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/shape_axes.h"

namespace lockstep {
namespace {

using pointwise::Expression;
using pointwise::Scalar;

// A bf16 weight is converted, as bf16 operands of arithmetic are.
Value of_type(std::string_view loss, std::string_view kind, Value weight, DType dtype) {
  if (weight.dtype() == DType::BF16) return cast(weight, sum_type(DType::BF16));
  check(weight.dtype() == dtype, loss, "{}: the {} is {}, expected {}: {}", axes::path(weight), kind,
        weight.type().str(), name_of(dtype), kTypesDiffer);
  return weight;
}

void require_mask(std::string_view loss, Value mask, const Type& type) {
  const std::vector<Type> both{type, {mask.shape(), type.dtype}};
  const std::string place = axes::path(mask);
  check(broadcast_shape(loss, place, both) == type.shape, loss,
        "{}: the mask is {}, expected a shape that broadcasts to {}", place, mask.type().str(), type.shape.str());
}

// W, but 1 where W is 0: the quotient of two sums without elements is then 0, and so is its gradient.
Value divisor(Value total) {
  Expression expression;
  const Scalar x = expression.input(0);
  expression.set_result(pointwise::apply("select", {x, x, expression.constant(1)}));
  return pointwise_value(expression, std::span(&total, 1));
}

}  // namespace

void require_equal_shapes(std::string_view loss, Value prediction, Value target) {
  check(prediction.shape().rank() >= 1 && prediction.shape() == target.shape(), loss,
        "{}: the prediction is {}, the target {}, expected equal shapes (samples, ...)", axes::path(prediction),
        prediction.type().str(), target.type().str());
}

Value element_weights(std::string_view loss, const LossWeights& weights, Type type) {
  const DType dtype = sum_type(type.dtype);
  Value total;
  if (weights.sample) {
    total = of_type(loss, "weight of samples", weights.sample, dtype);
    check(total.shape() == Shape{type.shape[0]}, loss, "{}: the weight of samples is {}, expected {}({})",
          axes::path(total), total.type().str(), name_of(dtype), type.shape[0]);
    std::vector<std::int64_t> dims(static_cast<std::size_t>(type.shape.rank()), 1);
    dims[0] = type.shape[0];
    total = reshape(total, Shape(std::move(dims)));  // (samples, 1, ...)
  }
  if (weights.mask) {
    const Value mask = of_type(loss, "mask", weights.mask, dtype);
    require_mask(loss, mask, type);
    total = total ? total * mask : mask;
  }
  return total;
}

Value masked(std::string_view loss, Value target, Value mask) {
  if (!mask) return target;
  require_mask(loss, mask, target.type());
  return gate(of_type(loss, "mask", mask, sum_type(target.dtype())), target);
}

Loss weighted_mean(std::string_view loss, Value losses, const LossWeights& weights) {
  const Value terms = cast(losses, sum_type(losses.dtype()));
  const Value each = element_weights(loss, weights, terms.type());
  if (!each) return mean(terms);
  const std::int64_t distinct = each.shape().elements();
  const std::int64_t repeats = distinct == 0 ? 1 : terms.shape().elements() / distinct;  // by broadcasting
  const Value total = scale_shift(sum(each), static_cast<double>(repeats));
  return {sum(terms * each) / divisor(total), total};
}

}  // namespace lockstep

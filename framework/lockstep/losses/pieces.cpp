#include "lockstep/losses/pieces.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reshape.h"

namespace lockstep {

Value sum_behind(Value x, int kept) {
  check(x.shape().rank() >= kept, "sum_behind", "the value is {}, expected at least {} dimensions", x.type().str(),
        kept);
  const std::vector<std::int64_t>& dims = x.shape().dims();
  const Shape result(std::vector<std::int64_t>(dims.begin(), dims.begin() + kept));
  const Shape rest(std::vector<std::int64_t>(dims.begin() + kept, dims.end()));
  const std::int64_t rows = result.elements();
  const Value table = reshape(cast(x, sum_type(x.dtype())), {rows, rest.elements()});
  return reshape(sum_to(table, {rows, 1}), result);
}

Value floored_at(Value x, double floor) {
  pointwise::Expression expression;
  const pointwise::Scalar value = expression.input(0);
  expression.set_result(pointwise::apply("maximum", {value, expression.constant(floor)}));
  return pointwise_value(expression, std::span(&x, 1));
}

}  // namespace lockstep

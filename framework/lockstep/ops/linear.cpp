#include "lockstep/ops/linear.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/reduce.h"

namespace lockstep {

std::vector<Type> MatmulOp::infer(std::string_view path, std::span<const Type> inputs) const {
  const Shape &a = inputs[0].shape, &b = inputs[1].shape;
  check(a.rank() == 2 && b.rank() == 2, name(), "{}: operands are {} and {}, expected matrices", path, a.str(),
        b.str());
  check(inputs[0].dtype == inputs[1].dtype, name(), "{}: operands are {} and {}: {}", path, inputs[0].str(),
        inputs[1].str(), kTypesDiffer);
  const std::int64_t inner_a = a[transpose_a_ ? 0 : 1], inner_b = b[transpose_b_ ? 1 : 0];
  check(inner_a == inner_b, name(), "{}: left operand {} has inner size {}, right operand {} expects {}", path, a.str(),
        inner_a, b.str(), inner_b);
  return {{Shape{a[transpose_a_ ? 1 : 0], b[transpose_b_ ? 0 : 1]}, inputs[0].dtype}};
}

std::vector<Value> MatmulOp::gradient(const Request& r) const {
  const Value a = r.inputs[0], b = r.inputs[1], dy = r.gradients[0];
  Value da, db;  // for y = a b: da = dy b^T, db = a^T dy; a transposed operand takes the transposed product
  if (r.needed[0]) da = transpose_a_ ? matmul(b, dy, transpose_b_, true) : matmul(dy, b, false, !transpose_b_);
  if (r.needed[1]) db = transpose_b_ ? matmul(dy, a, true, transpose_a_) : matmul(a, dy, !transpose_a_, false);
  return {da, db};
}

double MatmulOp::flops(std::span<const Type> inputs, std::span<const Type> outputs) const {
  return 2.0 * static_cast<double>(outputs[0].shape.elements()) *
         static_cast<double>(inputs[0].shape[transpose_a_ ? 0 : 1]);
}

std::string MatmulOp::attributes() const {
  return std::string(transpose_a_ ? "a^T " : "a ") + (transpose_b_ ? "b^T" : "b");
}

std::vector<Type> LinearOp::infer(std::string_view path, std::span<const Type> inputs) const {
  const Shape &x = inputs[0].shape, &w = inputs[1].shape;
  check(x.rank() == 2, name(), "{}: input is {}, expected (samples, features); flatten images first", path, x.str());
  check(w.rank() == 2, name(), "{}: weight is {}, expected (out, in)", path, w.str());
  check(x[1] == w[1], name(), "{}: input has {} features, weight expects {}", path, x[1], w[1]);
  check(sum_type(inputs[0].dtype) == inputs[1].dtype, name(), "{}: input is {}, weight {}: {}", path, inputs[0].str(),
        inputs[1].str(), kTypesDiffer);
  if (inputs.size() > 2) {
    const Type bias{Shape{w[0]}, inputs[1].dtype};
    check(inputs[2] == bias, name(), "{}: bias is {}, expected {}", path, inputs[2].str(), bias.str());
  }
  return {{Shape{x[0], w[0]}, inputs[0].dtype}};
}

std::vector<Value> LinearOp::gradient(const Request& r) const {
  const Value x = r.inputs[0], w = r.inputs[1], dy = r.gradients[0];  // (N, in), (out, in), (N, out)
  check(!relu_, name(), "gradients are written before fusion, but this op has a ReLU");
  std::vector<Value> result(r.inputs.size());
  const bool bias = r.inputs.size() > 2 && r.needed[2];
  if (r.needed[1]) {
    const auto d = x.graph().apply(std::make_shared<LinearBackwardWeightsOp>(bias), {x, dy});
    result[1] = d[0];            // (out, in)
    if (bias) result[2] = d[1];  // (out)
  } else if (bias) {
    result[2] = channel_sum(dy);
  }
  if (r.needed[0]) result[0] = apply_op(std::make_shared<LinearBackwardDataOp>(), {dy, w});  // (N, in)
  return result;
}

double LinearOp::flops(std::span<const Type> inputs, std::span<const Type> outputs) const {
  return 2.0 * static_cast<double>(outputs[0].shape.elements()) * static_cast<double>(inputs[0].shape[1]);
}

std::vector<Type> LinearBackwardDataOp::infer(std::string_view, std::span<const Type> inputs) const {
  return {{Shape{inputs[0].shape[0], inputs[1].shape[1]}, inputs[0].dtype}};
}

std::vector<Value> LinearBackwardDataOp::gradient(const Request& r) const {
  const Value dy = r.inputs[0], w = r.inputs[1], g = r.gradients[0];  // (N, out), (out, in), (N, in)
  std::vector<Value> result(2);
  if (r.needed[0]) result[0] = linear(g, w);                                                         // (N, out)
  if (r.needed[1]) result[1] = apply_op(std::make_shared<LinearBackwardWeightsOp>(false), {g, dy});  // (out, in)
  return result;
}

double LinearBackwardDataOp::flops(std::span<const Type> inputs, std::span<const Type>) const {
  return 2.0 * static_cast<double>(inputs[0].shape[0]) * static_cast<double>(inputs[1].shape.elements());
}

std::vector<Type> LinearBackwardWeightsOp::infer(std::string_view, std::span<const Type> inputs) const {
  const DType type = sum_type(inputs[0].dtype);
  const std::int64_t in = inputs[0].shape[1], out = inputs[1].shape[1];
  std::vector<Type> outputs{{Shape{out, in}, type}};
  if (bias_) outputs.push_back({Shape{out}, type});
  return outputs;
}

std::vector<Value> LinearBackwardWeightsOp::gradient(const Request& r) const {
  const Value x = r.inputs[0], dy = r.inputs[1];                              // (N, in), (N, out)
  const Value g = r.gradients[0], g_bias = bias_ ? r.gradients[1] : Value();  // (out, in), (out)
  std::vector<Value> result(2);
  if (r.needed[0] && g) result[0] = apply_op(std::make_shared<LinearBackwardDataOp>(), {dy, g});  // (N, in)
  if (!r.needed[1]) return result;
  if (g) {
    result[1] = linear(x, g, g_bias);  // (N, out)
  } else if (g_bias) {
    result[1] = over_channels(g_bias, dy.type());
  }
  return result;
}

double LinearBackwardWeightsOp::flops(std::span<const Type> inputs, std::span<const Type> outputs) const {
  return 2.0 * static_cast<double>(inputs[0].shape[0]) * static_cast<double>(outputs[0].shape.elements());
}

Value matmul(Value a, Value b, bool transpose_a, bool transpose_b) {
  return apply_op(std::make_shared<MatmulOp>(transpose_a, transpose_b), {cast_for_product(a), cast_for_product(b)});
}

Value linear(Value x, Value weight, Value bias) {
  std::vector<Value> inputs{cast_for_product(x), weight};
  if (bias) inputs.push_back(bias);
  return apply_op(std::make_shared<LinearOp>(), std::move(inputs));
}

}  // namespace lockstep

#include "lockstep/ops/linear.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/pointwise/pointwise_op.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/shape_axes.h"

namespace lockstep {

namespace {

// Rows and columns of the last two dimensions, as the product reads them.
struct MatrixSize {
  MatrixSize(const Shape& shape, bool transposed)
      : rows(shape[shape.rank() - (transposed ? 1 : 2)]), columns(shape[shape.rank() - (transposed ? 2 : 1)]) {}
  std::int64_t rows, columns;
};

// The dimensions in front of the last two.
Shape stack_of(const Shape& shape) {
  return Shape(std::vector<std::int64_t>(shape.dims().begin(), shape.dims().end() - 2));
}

Shape joined(const Shape& front, std::initializer_list<std::int64_t> back) {
  std::vector<std::int64_t> dims = front.dims();
  dims.insert(dims.end(), back);
  return Shape(std::move(dims));
}

Shape broadcast_stacks(std::string_view op, std::string_view path, const Shape& a, const Shape& b) {
  const Shape short_stack = stack_of(a.rank() < b.rank() ? a : b);
  Shape stack = stack_of(a.rank() < b.rank() ? b : a);
  for (int i = 1; i <= short_stack.rank(); ++i) {
    std::int64_t& size = stack[stack.rank() - i];
    const std::int64_t other = short_stack[short_stack.rank() - i];
    if (size == 1) size = other;
    check(other == size || other == 1, op,
          "{}: operands are {} and {}, expected leading dimensions that are equal, or 1 where they differ", path,
          a.str(), b.str());
  }
  return stack;
}

}  // namespace

std::vector<Type> MatmulOp::infer(std::string_view path, std::span<const Type> inputs) const {
  const Shape &a = inputs[0].shape, &b = inputs[1].shape;
  check(a.rank() >= 2 && b.rank() >= 2, name(), "{}: operands are {} and {}, expected matrices (..., rows, columns)",
        path, a.str(), b.str());
  check(inputs[0].dtype == inputs[1].dtype, name(), "{}: operands are {} and {}: {}", path, inputs[0].str(),
        inputs[1].str(), kTypesDiffer);
  const MatrixSize left(a, transpose_a_), right(b, transpose_b_);
  check(left.columns == right.rows, name(), "{}: left operand {} has inner size {}, right operand {} expects {}", path,
        a.str(), left.columns, b.str(), right.rows);
  return {{joined(broadcast_stacks(name(), path, a, b), {left.rows, right.columns}), inputs[0].dtype}};
}

std::vector<Value> MatmulOp::gradient(const Request& r) const {
  const Value a = r.inputs[0], b = r.inputs[1], dy = r.gradients[0];
  Value da, db;  // for y = a b: da = dy b^T, db = a^T dy; a transposed operand takes the transposed product
  if (r.needed[0]) da = transpose_a_ ? matmul(b, dy, transpose_b_, true) : matmul(dy, b, false, !transpose_b_);
  if (r.needed[1]) db = transpose_b_ ? matmul(dy, a, true, transpose_a_) : matmul(a, dy, !transpose_a_, false);
  if (da) da = sum_to(da, a.shape());  // over the dimensions that were repeated
  if (db) db = sum_to(db, b.shape());
  return {da, db};
}

double MatmulOp::flops(std::span<const Type> inputs, std::span<const Type> outputs) const {
  return 2.0 * static_cast<double>(outputs[0].shape.elements()) *
         static_cast<double>(MatrixSize(inputs[0].shape, transpose_a_).columns);
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
  const auto product = [=](Value x, Value y) {
    return apply_op(std::make_shared<MatmulOp>(transpose_a, transpose_b), {cast_for_product(x), cast_for_product(y)});
  };
  const Shape shape = a.shape();
  if (transpose_a || shape.rank() <= 2 || b.shape().rank() != 2) return product(a, b);
  // One matrix on the right for all matrices on the left: their rows lie one below the other.
  const Shape stack = stack_of(shape);
  const std::int64_t rows = shape[shape.rank() - 2], inner = shape[shape.rank() - 1];
  const Value y = product(reshape(a, Shape{stack.elements() * rows, inner}), b);
  return reshape(y, joined(stack, {rows, y.shape()[1]}));
}

Value linear(Value x, Value weight, Value bias) {
  const auto layer = [&](Value rows) {
    std::vector<Value> inputs{cast_for_product(rows), weight};
    if (bias) inputs.push_back(bias);
    return apply_op(std::make_shared<LinearOp>(), std::move(inputs));
  };
  const Shape shape = x.shape(), w = weight.shape();
  if (shape.rank() == 2 || w.rank() != 2) return layer(x);
  const std::string path = axes::path(x);
  check(shape.rank() > 0 && shape[shape.rank() - 1] == w[1], "linear",
        "{}: input is {}, weight expects {} features in the last dimension; flatten images first", path, shape.str(),
        w[1]);
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end() - 1);
  const Value y = layer(reshape(x, Shape{Shape(dims).elements(), w[1]}));
  dims.push_back(w[0]);
  return reshape(y, Shape(std::move(dims)));
}

}  // namespace lockstep

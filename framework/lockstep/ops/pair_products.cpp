#include "lockstep/ops/pair_products.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/concat.h"
#include "lockstep/ops/linear.h"
#include "lockstep/ops/permute.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/slice.h"

namespace lockstep {
namespace {

Shape pairs_of(const Shape& x) { return {x[0], x[1] * (x[1] - 1) / 2}; }

void check_vectors(std::string_view op, std::string_view path, const Type& x) {
  check(x.shape.rank() == 3 && is_floating(x.dtype), op,
        "{}: input is {}, expected a floating type (samples, vectors, elements)", path, x.str());
}

double pair_flops(const Shape& x) { return static_cast<double>(pairs_of(x).elements() * x[2]); }

// m_ij = a_i . b_j + a_j . b_i.
Value mixed_products(Value a, Value b) {
  const Value products = matmul(a, b, false, true);
  return products + transpose(products, 1, 2);
}

// (N, C, C) -> (N, C (C - 1) / 2): the elements below the diagonal, row by row.
Value below_diagonal(Value m) {
  std::vector<Value> rows;
  for (std::int64_t i = 1; i < m.shape()[1]; ++i) rows.push_back(slice(select(m, 1, i), 1, 0, i));
  return rows.empty() ? slice(select(m, 1, 0), 1, 0, 0) : concat(rows, 1);
}

Value apply_gradient(Value dy, Value x) { return apply_op(std::make_shared<PairProductsGradientOp>(), {dy, x}); }

}  // namespace

std::vector<Type> PairProductsOp::infer(std::string_view path, std::span<const Type> inputs) const {
  check_vectors(name(), path, inputs[0]);
  return {{pairs_of(inputs[0].shape), inputs[0].dtype}};
}

std::vector<Value> PairProductsOp::gradient(const Request& r) const {
  return {apply_gradient(r.gradients[0], r.inputs[0])};
}

double PairProductsOp::flops(std::span<const Type> inputs, std::span<const Type>) const {
  return 2 * pair_flops(inputs[0].shape);
}

std::vector<Type> PairProductsGradientOp::infer(std::string_view path, std::span<const Type> inputs) const {
  check_vectors(name(), path, inputs[1]);
  const Type expected{pairs_of(inputs[1].shape), inputs[1].dtype};
  check(inputs[0] == expected, name(), "{}: the gradient is {}, expected {}", path, inputs[0].str(), expected.str());
  return {inputs[1]};
}

// dx is linear in dy and in x. With h, the gradient of dx: that of x_j is the sum over i of dy_ij h_i, and that of
// dy_ij is h_i . x_j + h_j . x_i.
std::vector<Value> PairProductsGradientOp::gradient(const Request& r) const {
  const Value dy = r.inputs[0], x = r.inputs[1], h = r.gradients[0];
  Value for_dy, for_x;
  if (r.needed[0]) for_dy = below_diagonal(mixed_products(h, x));
  if (r.needed[1]) for_x = apply_gradient(dy, h);
  return {for_dy, for_x};
}

double PairProductsGradientOp::flops(std::span<const Type> inputs, std::span<const Type>) const {
  return 4 * pair_flops(inputs[1].shape);
}

Value pair_products(Value x) { return apply_op(std::make_shared<PairProductsOp>(), {cast(x, sum_type(x.dtype()))}); }

}  // namespace lockstep

// The linear layer y = x W^T + b for x (N, in), W (out, in), b (out), its gradients, and products of matrices.
#pragma once

#include "lockstep/graph/graph.h"

namespace lockstep {

// (a (..., m, k), b (..., k, n)) -> op(a) op(b) (..., m, n) for each pair of matrices; op transposes the last two
// dimensions if asked to. The leading dimensions broadcast as in NumPy.
class MatmulOp : public Op {
 public:
  MatmulOp(bool transpose_a, bool transpose_b) : transpose_a_(transpose_a), transpose_b_(transpose_b) {}
  bool transpose_a() const { return transpose_a_; }
  bool transpose_b() const { return transpose_b_; }
  std::string_view name() const override { return "matmul"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
  std::string attributes() const override;

 private:
  bool transpose_a_, transpose_b_;
};

class LinearOp : public Op {
 public:
  explicit LinearOp(bool relu = false) : relu_(relu) {}
  bool relu() const { return relu_; }
  std::string_view name() const override { return "linear"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;  // x, W, [b]
  std::vector<Value> gradient(const Request& request) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
  std::string attributes() const override { return relu_ ? "+ relu" : ""; }

 private:
  bool relu_;
};

// (dy (N, out), W (out, in)) -> dx (N, in).
class LinearBackwardDataOp : public Op {
 public:
  std::string_view name() const override { return "linear_backward_data"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
};

// (x (N, in), dy (N, out)) -> dW (out, in), and db (out) if there is a bias.
class LinearBackwardWeightsOp : public Op {
 public:
  explicit LinearBackwardWeightsOp(bool bias) : bias_(bias) {}
  std::string_view name() const override { return "linear_backward_weights"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;

 private:
  bool bias_;
};

// Returns the product of two matrices, or of stacks of matrices (..., m, k) and (..., k, n), whose leading dimensions
// broadcast as in NumPy; each matrix is transposed first if asked for. Throws Error where inner sizes, leading
// dimensions or types do not fit.
Value matmul(Value a, Value b, bool transpose_a = false, bool transpose_b = false);
// Returns x W^T + b (..., out) for x (..., in), W (out, in) and b (out); an empty b is left out. Throws Error where
// shapes or types do not fit.
Value linear(Value x, Value weight, Value bias = {});

}  // namespace lockstep

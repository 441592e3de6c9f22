// Products of all pairs of a sample's vectors, the dot interaction of recommenders (Naumov et al., "Deep learning
// recommendation model", 2019, section 2.1). It can be differentiated any number of times.
#pragma once

#include "lockstep/graph/graph.h"

namespace lockstep {

// (x (N, C, E)) -> y (N, C (C - 1) / 2), y = x_i . x_j for i > j in the order of PyTorch's tril_indices(offset=-1):
// (1, 0), (2, 0), (2, 1), (3, 0), ...
class PairProductsOp : public Op {
 public:
  std::string_view name() const override { return "pair_products"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
};

// (dy (N, C (C - 1) / 2), x (N, C, E)) -> dx (N, C, E): dx_i = the sum over j other than i of dy_ij x_j, in the order
// of j.
class PairProductsGradientOp : public Op {
 public:
  std::string_view name() const override { return "pair_products_gradient"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
};

// Returns the products of all pairs of the vectors of each sample. bf16 vectors give f32. Throws Error unless x is (N,
// C, E) of a floating type.
Value pair_products(Value x);

}  // namespace lockstep

// Sums over ranks inside a graph.
#pragma once

#include <memory>

#include "lockstep/graph/collective.h"
#include "lockstep/graph/graph.h"

namespace lockstep {

// Sums x (f32 or f64, any shape) over the ranks of the collective, in f64. As the loss is the sum of the losses of all
// ranks, the gradient is the sum over the ranks of the incoming gradients.
class AllReduceSumOp : public Op {
 public:
  explicit AllReduceSumOp(std::shared_ptr<Collective> collective) : collective_(std::move(collective)) {}
  const std::shared_ptr<Collective>& collective() const { return collective_; }
  std::string_view name() const override { return "all_reduce_sum"; }
  bool is_collective() const override { return true; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;

 private:
  std::shared_ptr<Collective> collective_;
};

// Returns the sum of x over the ranks of the collective. Throws Error for another type than f32 and f64.
Value all_reduce_sum(Value x, std::shared_ptr<Collective> collective);

}  // namespace lockstep

// Sums over ranks inside a graph.
#pragma once

#include <memory>

#include "lockstep/graph/collective.h"
#include "lockstep/graph/graph.h"

namespace lockstep {

// x, f32 or f64 -> its sum over the collective's ranks, added in f64. The loss being the sum of all ranks' losses, the
// gradient is the same sum of theirs.
class AllReduceSumOp : public Op {
 public:
  explicit AllReduceSumOp(std::shared_ptr<Collective> collective) : collective_(std::move(collective)) {}
  const std::shared_ptr<Collective>& collective() const { return collective_; }
  std::string_view name() const override { return "all_reduce_sum"; }
  bool is_collective() const override { return true; }
  std::vector<Type> infer(std::string_view place, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;

 private:
  std::shared_ptr<Collective> collective_;
};

Value all_reduce_sum(Value x, std::shared_ptr<Collective> collective);

}  // namespace lockstep

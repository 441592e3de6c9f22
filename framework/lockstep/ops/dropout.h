// Dropout (Srivastava et al., "Dropout" (2014), inverted form): an element becomes 0 with probability p, else it is
// divided by 1 - p. The choice depends on (seed, call site, number of the use of that site in the model, step, sample
// id, logical element) alone. So it is the same at every world size, batch split and layout, and backward computes it
// again instead of storing a mask.
#pragma once

#include "lockstep/graph/graph.h"

namespace lockstep {

// (x, step, sample ids) -> y. The gradient applies the same op to dy.
class DropoutOp : public Op {
 public:
  DropoutOp(double probability, std::uint64_t key) : probability_(probability), key_(key) {}
  double probability() const { return probability_; }
  std::uint64_t key() const { return key_; }
  std::string_view name() const override { return "dropout"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;

 private:
  double probability_;
  std::uint64_t key_;
};

// Applies dropout to x, whose first dimension is the samples of the batch; a model where it is not is refused when it
// is compiled. `call_site`, the module path, distinguishes two dropouts of one model, and each use of one site has a
// mask of its own (Graph::random_key). Throws Error for a probability outside [0, 1) or a scalar x.
Value dropout(Value x, double probability, std::string_view call_site);

}  // namespace lockstep

// Dropout (Srivastava et al. 2014, inverted form): zero with probability p, else divide by 1 - p. Which elements go is
// a function of (seed, call site, step, sample id, logical element) alone, so it is the same at every world size, batch
// split and layout, and backward draws it again instead of storing a mask.
#pragma once

#include "lockstep/graph/graph.h"

namespace lockstep {

// (x, step, sample ids) -> y; dy takes the same op.
class DropoutOp : public Op {
 public:
  DropoutOp(double probability, std::uint64_t key) : probability_(probability), key_(key) {}
  double probability() const { return probability_; }
  std::uint64_t key() const { return key_; }
  std::string_view name() const override { return "dropout"; }
  std::vector<Type> infer(std::string_view place, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;

 private:
  double probability_;
  std::uint64_t key_;
};

// `call_site` keeps two dropouts of one model apart: the module's path.
Value dropout(Value x, double probability, std::string_view call_site);

}  // namespace lockstep

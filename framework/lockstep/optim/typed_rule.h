// An UpdateRule whose functions for float and double are templates: a class Rule, derived from TypedRule<Rule>, has
// run(n, value, gradient, states, rates) for apply(), and sum() with the same arguments for squares().
#pragma once

#include "lockstep/optim/update_rule.h"

namespace lockstep::optim {

template <class Rule>
class TypedRule : public UpdateRule {
 public:
  void apply(std::int64_t n, float* value, const float* gradient, std::span<float* const> states,
             const Rates& rates) const override {
    self().run(n, value, gradient, states, rates);
  }
  void apply(std::int64_t n, double* value, const double* gradient, std::span<double* const> states,
             const Rates& rates) const override {
    self().run(n, value, gradient, states, rates);
  }
  Squares squares(std::int64_t n, const float* value, const float* gradient, std::span<float* const> states,
                  const Rates& rates) const override {
    return self().sum(n, value, gradient, states, rates);
  }
  Squares squares(std::int64_t n, const double* value, const double* gradient, std::span<double* const> states,
                  const Rates& rates) const override {
    return self().sum(n, value, gradient, states, rates);
  }

 private:
  const Rule& self() const { return static_cast<const Rule&>(*this); }
};

}  // namespace lockstep::optim

// Makes an UpdateRule of a struct Rule that has `kStates` (the names of its states), `name()`, and a template
// `prepare<T>(rates)` that returns a function object (T& value, T gradient, T& state...), for T = float and double.
#pragma once

#include <array>
#include <utility>

#include "lockstep/optim/update_rule.h"

namespace lockstep::optim {

// Applies `element`, the result of Rule::prepare<T>(rates), to each of n elements.
template <class T, class Element, std::size_t... I>
void update_elements(std::int64_t n, T* value, const T* gradient, std::span<T* const> states, const Element& element,
                     std::index_sequence<I...>) {
  const std::array<T*, sizeof...(I)> state{states[I]...};
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) element(value[i], gradient[i], state[I][i]...);
}

template <class Rule>
class ElementwiseRule final : public UpdateRule {
 public:
  explicit ElementwiseRule(Rule rule) : rule_(rule) {}
  std::string_view name() const override { return rule_.name(); }
  std::vector<std::string_view> states() const override { return {Rule::kStates.begin(), Rule::kStates.end()}; }
  void apply(std::int64_t n, float* value, const float* gradient, std::span<float* const> states,
             const Rates& rates) const override {
    run(n, value, gradient, states, rates);
  }
  void apply(std::int64_t n, double* value, const double* gradient, std::span<double* const> states,
             const Rates& rates) const override {
    run(n, value, gradient, states, rates);
  }

 private:
  template <class T>
  void run(std::int64_t n, T* value, const T* gradient, std::span<T* const> states, const Rates& rates) const {
    update_elements(n, value, gradient, states, rule_.template prepare<T>(rates),
                    std::make_index_sequence<Rule::kStates.size()>{});
  }
  Rule rule_;
};

}  // namespace lockstep::optim

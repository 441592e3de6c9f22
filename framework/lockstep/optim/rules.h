// Makes an UpdateRule of a struct Rule that has `kStates` (the names of its states), `name()`, and a template
// `prepare<T>(rates)` that returns a function object (T& value, T gradient, T& state...), for T = float and double. The
// gradient is scaled and clipped already. A rule that uses norms also has `step<T>(rates)`, which returns a function
// object (T value, T gradient, const T& state...) -> T whose results Squares::steps sums, and `trust(squares, rates)`.
#pragma once

#include <array>
#include <limits>
#include <string>
#include <utility>

#include "lockstep/core/sum_of_squares.h"
#include "lockstep/optim/typed_rule.h"

#ifdef __clang__  // which tells of each loop that it does not vectorise in spite of `omp simd`
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

namespace lockstep::optim {

// Return the settings as text, see UpdateRule::settings().
std::string text_of(const SgdOptions& options);
std::string text_of(const AdamOptions& options);
std::string text_of(const RmspropOptions& options);
std::string text_of(const AdagradOptions& options);
std::string text_of(const LionOptions& options);
std::string text_of(const LarsOptions& options);
std::string text_of(const LambOptions& options);

// Scales an element of the summed gradient, and clips it by value; a NaN stays a NaN.
template <bool kClips, class T>
struct MeanGradient {
  explicit MeanGradient(const Rates& rates)
      : scale(static_cast<T>(rates.gradient_scale)), limit(static_cast<T>(rates.clip_value)) {}
  T operator()(T sum) const {
    const T mean = sum * scale;
    if constexpr (!kClips) return mean;
    return mean < -limit ? -limit : (limit < mean ? limit : mean);
  }
  T scale, limit;
};

// Applies `element`, the result of Rule::prepare<T>(rates), to each of n elements.
template <class T, class Mean, class Element, std::size_t... I>
void update_elements(std::int64_t n, T* value, const T* gradient, std::span<T* const> states, const Mean& mean,
                     const Element& element, std::index_sequence<I...>) {
  const std::array<T*, sizeof...(I)> state{states[I]...};
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) element(value[i], mean(gradient[i]), state[I][i]...);
}

// Sums the squares of values, and of the results of `step`.
template <class T, class Mean, class Step, std::size_t... I>
Squares sum_squares(std::int64_t n, const T* value, const T* gradient, std::span<T* const> states, const Mean& mean,
                    const Step& step, std::index_sequence<I...>) {
  const std::array<const T*, sizeof...(I)> state{states[I]...};
  const auto [values, steps] = sums_of_squares<2>(n, [&](std::int64_t i) {
    return std::array{static_cast<double>(value[i]),
                      static_cast<double>(step(value[i], mean(gradient[i]), state[I][i]...))};
  });
  return {.values = values, .steps = steps};
}

template <class Rule>
class ElementwiseRule final : public TypedRule<ElementwiseRule<Rule>> {
 public:
  explicit ElementwiseRule(Rule rule) : rule_(std::move(rule)) {}
  std::string_view name() const override { return rule_.name(); }
  std::string settings() const override {
    if constexpr (requires { rule_.options; }) return text_of(rule_.options);
    return {};
  }
  std::vector<std::string_view> states() const override { return {Rule::kStates.begin(), Rule::kStates.end()}; }

  bool uses_norms() const override { return kUsesNorms; }
  double trust(const Squares& squares, const Rates& rates) const override {
    if constexpr (kUsesNorms) return rule_.trust(squares, rates);
    return this->UpdateRule::trust(squares, rates);
  }

 private:
  friend TypedRule<ElementwiseRule<Rule>>;
  static constexpr bool kUsesNorms = requires(const Rule& rule, const Squares& squares, const Rates& rates) {
    rule.trust(squares, rates);
  };
  using States = std::make_index_sequence<Rule::kStates.size()>;
  template <class T>
  void run(std::int64_t n, T* value, const T* gradient, std::span<T* const> states, const Rates& rates) const {
    const auto element = rule_.template prepare<T>(rates);
    rates.clip_value > 0
        ? update_elements(n, value, gradient, states, MeanGradient<true, T>(rates), element, States{})
        : update_elements(n, value, gradient, states, MeanGradient<false, T>(rates), element, States{});
  }
  template <class T>
  Squares sum(std::int64_t n, const T* value, const T* gradient, std::span<T* const> states, const Rates& rates) const {
    if constexpr (kUsesNorms) {
      const auto step = rule_.template step<T>(rates);
      return rates.clip_value > 0
                 ? sum_squares(n, value, gradient, states, MeanGradient<true, T>(rates), step, States{})
                 : sum_squares(n, value, gradient, states, MeanGradient<false, T>(rates), step, States{});
    } else {
      // NOLINTNEXTLINE(bugprone-parent-virtual-call): the function of TypedRule would call this one again
      return this->UpdateRule::squares(n, value, gradient, states, rates);
    }
  }
  Rule rule_;
};

}  // namespace lockstep::optim

#ifdef __clang__
#pragma clang diagnostic pop
#endif

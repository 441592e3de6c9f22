#include "lockstep/optim/row_rule.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/core/error.h"
#include "lockstep/core/math.h"
#include "lockstep/optim/groups.h"

namespace lockstep::optim {
namespace {

double epsilon_of(const RowRuleOptions& o) {
  if (o.epsilon >= 0) return o.epsilon;
  return o.rule == RowRule::Adam ? 1e-8 : 1e-10;
}

// The rate of a step: Adam's contains the corrections of both means.
double rate_of(const RowRuleOptions& o, const RowRates& r) {
  const double rate = r.learning_rate * o.rate_scale, count = static_cast<double>(r.count);
  if (o.rule != RowRule::Adam) return rate;
  return rate * std::sqrt(1 - math::pow(o.beta2, count)) / (1 - math::pow(o.beta1, count));
}

// Where a gradient is 0, the first update of a row divides 0 by epsilon and the root of the accumulator.
void check_divisor(const RowRuleOptions& o, std::string_view rule) {
  const auto is_positive = [](double value) { return static_cast<float>(value) > 0; };  // also in a table of f32
  const bool has_epsilon = is_positive(epsilon_of(o));
  check(o.rule != RowRule::Adam || has_epsilon, rule, "epsilon is {}, expected a number above 0 (1e-8 by default)",
        o.epsilon);
  const bool is_adagrad = o.rule == RowRule::Adagrad || o.rule == RowRule::AdagradRowwise;
  check(!is_adagrad || has_epsilon || is_positive(o.initial_accumulator), rule,
        "epsilon is {} and the accumulator begins at {}, expected one above 0 (epsilon is 1e-10 by default)", o.epsilon,
        o.initial_accumulator);
}

}  // namespace

const RowRuleOptions& TableRules::of(const std::string& name) const {
  for (const TableGroup& group : groups) {
    if (matches(group.pattern, name)) return group.rule;
  }
  return all;
}

std::string_view name_of(RowRule rule) {
  switch (rule) {
    case RowRule::Sgd:
      return "sgd";
    case RowRule::Adagrad:
      return "adagrad";
    case RowRule::AdagradRowwise:
      return "rowwise-adagrad";
    case RowRule::Adam:
      return "adam";
    case RowRule::Ftrl:
      return "ftrl";
  }
  return "?";
}

std::vector<RowState> row_states(const RowRuleOptions& o) {
  switch (o.rule) {
    case RowRule::Sgd:
      return {};
    case RowRule::Adagrad:
      return {{.name = "sum", .initial = o.initial_accumulator}};
    case RowRule::AdagradRowwise:
      return {{.name = "row_sum", .one_per_row = true, .initial = o.initial_accumulator}};
    case RowRule::Adam:
      return {{.name = "mean"}, {.name = "square"}};
    case RowRule::Ftrl:
      return {{.name = "linear"}, {.name = "sum", .initial = o.initial_accumulator}};
  }
  return {};
}

void check_row_rule(const RowRuleOptions& o) {
  const std::string_view rule = name_of(o.rule);
  check(std::isfinite(o.rate_scale) && o.rate_scale >= 0, rule,
        "the factor of the learning rate is {}, expected a "
        "finite number, at least 0",
        o.rate_scale);
  check(std::isfinite(o.weight_decay) && o.weight_decay >= 0, rule, "weight decay {} must not be negative",
        o.weight_decay);
  check(o.beta1 >= 0 && o.beta1 < 1, rule, "beta1 {} is not in [0, 1)", o.beta1);
  check(o.beta2 >= 0 && o.beta2 < 1, rule, "beta2 {} is not in [0, 1)", o.beta2);
  check(o.initial_accumulator >= 0, rule, "the accumulator begins at {}, expected at least 0", o.initial_accumulator);
  check(o.l1 >= 0 && o.l2 >= 0 && o.beta >= 0, rule, "l1 {}, l2 {} and beta {} must not be negative", o.l1, o.l2,
        o.beta);
  check(o.rule != RowRule::Ftrl || o.beta + o.l2 + o.initial_accumulator > 0, rule,
        "l2, beta and the accumulator are all 0, expected one above 0: a row's first step divides by their sum");
  check_divisor(o, rule);
}

template <class T>
RowUpdate<T>::RowUpdate(const RowRuleOptions& options, const RowRates& rates)
    : options_(options),
      rate_(static_cast<T>(rate_of(options, rates))),
      scale_(static_cast<T>(rates.gradient_scale)),
      limit_(rates.clip_value > 0 ? static_cast<T>(rates.clip_value) : std::numeric_limits<T>::infinity()),
      decay_(static_cast<T>(options.weight_decay)),
      epsilon_(static_cast<T>(epsilon_of(options))) {}

template <class T>
void RowUpdate<T>::adagrad(std::int64_t n, const T* g, T* w, T* sum) const {
  for (std::int64_t i = 0; i < n; ++i) {
    const T d = mean(g[i], w[i]);
    sum[i] += d * d;
    w[i] -= rate_ * d / (std::sqrt(sum[i]) + epsilon_);
  }
}

template <class T>
void RowUpdate<T>::rowwise_adagrad(std::int64_t n, const T* g, T* w, T* sum) const {
  constexpr std::int64_t kSums = 4;  // of every fourth element: they do not wait for each other
  double squares[kSums] = {};
  for (std::int64_t at = 0; at < n; at += kSums) {
    for (std::int64_t i = at; i < std::min(at + kSums, n); ++i) {
      const auto d = static_cast<double>(mean(g[i], w[i]));
      squares[i - at] += d * d;
    }
  }
  *sum += static_cast<T>((squares[0] + squares[1] + squares[2] + squares[3]) / static_cast<double>(n));
  const T rate = rate_ / (std::sqrt(*sum) + epsilon_);
  for (std::int64_t i = 0; i < n; ++i) w[i] -= rate * mean(g[i], w[i]);
}

template <class T>
void RowUpdate<T>::adam(std::int64_t n, const T* g, T* w, T* first, T* second) const {
  const T c1 = static_cast<T>(1 - options_.beta1), c2 = static_cast<T>(1 - options_.beta2);
  for (std::int64_t i = 0; i < n; ++i) {
    const T d = mean(g[i], w[i]);
    first[i] += c1 * (d - first[i]);
    second[i] += c2 * (d * d - second[i]);
    w[i] -= rate_ * first[i] / (std::sqrt(second[i]) + epsilon_);
  }
}

template <class T>
void RowUpdate<T>::ftrl(std::int64_t n, const T* g, T* w, T* z, T* squares) const {
  const T l1 = static_cast<T>(options_.l1), l2 = static_cast<T>(options_.l2), beta = static_cast<T>(options_.beta);
  for (std::int64_t i = 0; i < n; ++i) {
    const T d = mean(g[i], w[i]), before = std::sqrt(squares[i]);
    squares[i] += d * d;
    const T after = std::sqrt(squares[i]);
    if (rate_ == 0) continue;  // the step of a schedule that has ended
    z[i] += d - (after - before) / rate_ * w[i];
    const T excess = std::abs(z[i]) - l1;
    w[i] = excess <= 0 ? T{0} : (z[i] > 0 ? -excess : excess) / ((beta + after) / rate_ + l2);
  }
}

template <class T>
void RowUpdate<T>::operator()(std::int64_t width, const T* gradient, T* values, std::span<T* const> states) const {
  switch (options_.rule) {
    case RowRule::Sgd:
      for (std::int64_t i = 0; i < width; ++i) values[i] -= rate_ * mean(gradient[i], values[i]);
      return;
    case RowRule::Adagrad:
      return adagrad(width, gradient, values, states[0]);
    case RowRule::AdagradRowwise:
      return rowwise_adagrad(width, gradient, values, states[0]);
    case RowRule::Adam:
      return adam(width, gradient, values, states[0], states[1]);
    case RowRule::Ftrl:
      return ftrl(width, gradient, values, states[0], states[1]);
  }
}

template class RowUpdate<float>;
template class RowUpdate<double>;

}  // namespace lockstep::optim

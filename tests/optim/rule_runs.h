// For the tests of update rules: runs a rule on gradients that are functions of element and step, and compares it with
// a plain reference in double.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "lockstep/core/random.h"
#include "lockstep/optim/update_rule.h"

namespace lockstep::optim {

constexpr int kSteps = 10;
constexpr std::int64_t kCount = 37;

// One element's history in double: `step(w, g, t)` is the reference, called with t from 1.
using Reference = std::function<void(double& w, double g, int t)>;

inline double gradient_of(std::int64_t element, int step) {
  RandomStream random(static_cast<std::uint64_t>(element), static_cast<std::uint64_t>(step));
  return random.normal();
}

inline Rates rates_of(int step, double decay) {
  return {.learning_rate = 0.1 / step, .weight_decay = decay, .gradient_scale = 1.0 / 8, .step = step};
}

template <class T>
std::vector<T> run(const UpdateRule& rule, double decay) {
  std::vector<T> w(kCount), g(kCount);
  for (std::int64_t i = 0; i < kCount; ++i) w[static_cast<std::size_t>(i)] = static_cast<T>(gradient_of(i, 0));
  std::vector<std::vector<T>> states(rule.states().size(), std::vector<T>(kCount, 0));
  std::vector<T*> pointers;
  for (auto& s : states) pointers.push_back(s.data());
  for (int t = 1; t <= kSteps; ++t) {
    for (std::int64_t i = 0; i < kCount; ++i) g[static_cast<std::size_t>(i)] = static_cast<T>(8 * gradient_of(i, t));
    rule.apply(kCount, w.data(), g.data(), pointers, rates_of(t, decay));
  }
  return w;
}

inline void expect_follows(const UpdateRule& rule, double decay, const std::function<Reference()>& reference) {
  const auto wide = run<double>(rule, decay);
  const auto narrow = run<float>(rule, decay);
  for (std::int64_t i = 0; i < kCount; ++i) {
    double w = gradient_of(i, 0);
    const Reference step = reference();
    for (int t = 1; t <= kSteps; ++t) step(w, gradient_of(i, t), t);
    EXPECT_NEAR(wide[static_cast<std::size_t>(i)], w, 1e-13) << "element " << i;
    EXPECT_NEAR(narrow[static_cast<std::size_t>(i)], w, 2e-6 * (1 + std::abs(w))) << "element " << i;
  }
}

}  // namespace lockstep::optim

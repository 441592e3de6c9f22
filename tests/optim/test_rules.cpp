// Update rules against PyTorch's documented algorithms, written out in double.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lockstep/core/error.h"
#include "tests/optim/rule_runs.h"

namespace lockstep::optim {
namespace {

Reference sgd_reference(double momentum, bool nesterov, double decay) {
  return [=, m = 0.0](double& w, double g, int t) mutable {
    g += decay * w;
    if (momentum != 0) {
      m = t == 1 ? g : momentum * m + g;
      g = nesterov ? g + momentum * m : m;
    }
    w -= 0.1 / t * g;
  };
}

Reference adam_reference(AdamOptions o, double decay) {
  return [=, m = 0.0, v = 0.0](double& w, double g, int t) mutable {
    const double rate = 0.1 / t;
    o.decoupled_decay ? w -= rate* decay* w : g += decay * w;
    m = o.beta1 * m + (1 - o.beta1) * g;
    v = o.beta2 * v + (1 - o.beta2) * g * g;
    w -= rate * (m / (1 - std::pow(o.beta1, t))) / (std::sqrt(v / (1 - std::pow(o.beta2, t))) + o.epsilon);
  };
}

TEST(Sgd, FollowsItsDefinition) {
  for (const double decay : {0.0, 0.05}) {
    for (const SgdOptions o :
         {SgdOptions{}, SgdOptions{.momentum = 0.9}, SgdOptions{.momentum = 0.8, .nesterov = true}}) {
      SCOPED_TRACE(formatted("momentum {} nesterov {} decay {}", o.momentum, o.nesterov, decay));
      expect_follows(*sgd(o), decay, [=] { return sgd_reference(o.momentum, o.nesterov, decay); });
    }
  }
}

TEST(Adam, FollowsItsDefinition) {
  for (const double decay : {0.0, 0.05}) {
    for (const bool decoupled : {false, true}) {
      for (const AdamOptions o :
           {AdamOptions{.decoupled_decay = decoupled},
            AdamOptions{.beta1 = 0.5, .beta2 = 0.9, .epsilon = 1e-3, .decoupled_decay = decoupled}}) {
        SCOPED_TRACE(formatted("beta1 {} decoupled {} decay {}", o.beta1, decoupled, decay));
        expect_follows(*adam(o), decay, [=] { return adam_reference(o, decay); });
      }
    }
  }
}

Reference rmsprop_reference(const RmspropOptions& o, double decay) {
  return [=, v = 0.0, m = 0.0, b = 0.0](double& w, double g, int t) mutable {
    g += decay * w;
    v = o.alpha * v + (1 - o.alpha) * g * g;
    m = o.alpha * m + (1 - o.alpha) * g;
    const double step = g / (std::sqrt(o.centered ? v - m * m : v) + o.epsilon);
    b = o.momentum * b + step;
    w -= 0.1 / t * (o.momentum > 0 ? b : step);
  };
}

TEST(Rmsprop, FollowsItsDefinition) {
  for (const double decay : {0.0, 0.05}) {
    for (const bool centered : {false, true}) {
      for (const RmspropOptions o : {RmspropOptions{.alpha = 0.9, .epsilon = 1e-3, .centered = centered},
                                     RmspropOptions{.epsilon = 1e-2, .momentum = 0.8, .centered = centered}}) {
        SCOPED_TRACE(formatted("alpha {} momentum {} centered {} decay {}", o.alpha, o.momentum, centered, decay));
        expect_follows(*rmsprop(o), decay, [=] { return rmsprop_reference(o, decay); });
      }
    }
  }
}

// A gradient that never changes has no deviation: the root is of a number that rounding may bring below 0.
TEST(Rmsprop, StaysFiniteWithoutDeviation) {
  const auto rule = rmsprop({.alpha = 0.5, .epsilon = 1e-3, .centered = true});
  float w = 1, square = 0, mean = 0;
  const float g = 0.3F;
  float* const states[] = {&square, &mean};
  for (int t = 1; t <= 200; ++t) rule->apply(1, &w, &g, states, {.learning_rate = 1e-6, .step = t});
  EXPECT_TRUE(std::isfinite(w));
  EXPECT_LT(w, 1);
}

TEST(UpdateRules, HandOnANaN) {
  std::vector<std::unique_ptr<UpdateRule>> rules;
  rules.push_back(adagrad({}));
  rules.push_back(adamax({}));
  rules.push_back(nadam({}));
  rules.push_back(radam({}));
  rules.push_back(lion({}));
  rules.push_back(lars({}));
  rules.push_back(lamb({}));
  for (const auto& rule : rules) {
    float w = 1, first = 0, second = 0;
    const float g = std::numeric_limits<float>::quiet_NaN();
    float* const states[] = {&first, &second};
    rule->apply(1, &w, &g, std::span(states, rule->states().size()),
                {.learning_rate = 0.1, .step = 1, .clip_value = 1});
    EXPECT_TRUE(std::isnan(w)) << rule->name();
  }
}

// Every rule sees the clipped mean gradient, not the sum.
TEST(UpdateRules, ClipByValueAfterScaling) {
  float w[4] = {0, 0, 0, 0};
  const float sums[4] = {8, -8, 0.4F, -0.4F};
  sgd({})->apply(4, w, sums, {}, {.learning_rate = 1, .gradient_scale = 0.5, .clip_value = 1});
  EXPECT_EQ(w[0], -1);
  EXPECT_EQ(w[1], 1);
  EXPECT_EQ(w[2], -0.2F);
  EXPECT_EQ(w[3], 0.2F);
}

TEST(UpdateRules, KeepPaddingAtZero) {
  std::vector<std::unique_ptr<UpdateRule>> rules;
  rules.push_back(sgd({}));
  rules.push_back(sgd({.momentum = 0.9, .nesterov = true}));
  rules.push_back(adam({}));
  rules.push_back(adam({.decoupled_decay = true}));
  rules.push_back(rmsprop({}));
  rules.push_back(rmsprop({.momentum = 0.9, .centered = true}));
  rules.push_back(adagrad({}));
  rules.push_back(nadam({}));
  rules.push_back(radam({}));
  rules.push_back(lion({}));
  rules.push_back(lars({}));
  rules.push_back(lamb({}));
  for (const auto& rule : rules) {
    float w[2] = {0, 1}, g[2] = {0, 1}, first[2] = {}, second[2] = {}, third[2] = {};
    float* const states[] = {first, second, third};
    for (int t = 1; t <= 3; ++t) rule->apply(2, w, g, std::span(states, rule->states().size()), rates_of(t, 0.1));
    EXPECT_EQ(w[0], 0) << rule->name();
    EXPECT_EQ(first[0], 0) << rule->name();
    EXPECT_EQ(second[0], 0) << rule->name();
    EXPECT_EQ(third[0], 0) << rule->name();
    EXPECT_NE(w[1], 1) << rule->name();
  }
  float w = 0, mean = 0, largest = 0;  // of Adamax, the largest gradient begins at epsilon
  const float g = 0;
  float* const states[] = {&mean, &largest};
  adamax({})->apply(1, &w, &g, states, rates_of(1, 0.1));
  EXPECT_EQ(w, 0);
}

TEST(UpdateRules, NameTheirStates) {
  EXPECT_TRUE(sgd({})->states().empty());
  EXPECT_EQ(sgd({.momentum = 0.9})->states(), std::vector<std::string_view>{"momentum"});
  EXPECT_EQ(adam({})->states(), (std::vector<std::string_view>{"mean", "square"}));
  EXPECT_EQ(rmsprop({})->states(), std::vector<std::string_view>{"square"});
  EXPECT_EQ(rmsprop({.momentum = 0.9})->states(), (std::vector<std::string_view>{"square", "momentum"}));
  EXPECT_EQ(rmsprop({.centered = true})->states(), (std::vector<std::string_view>{"square", "mean"}));
  EXPECT_EQ(rmsprop({.momentum = 0.9, .centered = true})->states(),
            (std::vector<std::string_view>{"square", "mean", "momentum"}));
  EXPECT_EQ(rmsprop({})->name(), "rmsprop");
  EXPECT_EQ(adam({})->name(), "adam");
  EXPECT_EQ(adam({.decoupled_decay = true})->name(), "adamw");
}

// A slice is updated alike wherever it is cut: owners of slices need not agree on where.
TEST(UpdateRules, TreatElementsAlone) {
  const auto rule = adam({});
  std::vector<float> whole(1000), parts, gradient(1000), states(4000);
  RandomStream random(1, 1);
  for (float& v : whole) v = static_cast<float>(random.normal());
  for (float& v : gradient) v = static_cast<float>(random.normal());
  parts = whole;
  float *a = states.data(), *b = a + 1000, *c = b + 1000, *d = c + 1000;
  for (int t = 1; t <= 3; ++t) {
    float* const all[] = {a, b};
    rule->apply(1000, whole.data(), gradient.data(), all, rates_of(t, 0.1));
    for (const auto& [begin, end] : {std::pair{0, 333}, {333, 334}, {334, 1000}}) {
      float* const some[] = {c + begin, d + begin};
      rule->apply(end - begin, parts.data() + begin, gradient.data() + begin, some, rates_of(t, 0.1));
    }
  }
  EXPECT_EQ(whole, parts);
}

TEST(UpdateRules, RefuseOptionsOutOfRange) {
  EXPECT_THROW(sgd({.momentum = 1}), Error);
  EXPECT_THROW(sgd({.nesterov = true}), Error);
  EXPECT_THROW(adam({.beta1 = 1}), Error);
  EXPECT_THROW(adam({.beta2 = -0.1}), Error);
  EXPECT_THROW(adam({.epsilon = 0}), Error);
  EXPECT_THROW(rmsprop({.alpha = 1}), Error);
  EXPECT_THROW(rmsprop({.epsilon = 0}), Error);
  EXPECT_THROW(rmsprop({.momentum = -0.1}), Error);
  EXPECT_THROW(adagrad({.epsilon = 0}), Error);
  EXPECT_THROW(adamax({.epsilon = 0}), Error);
  EXPECT_THROW(nadam({.beta1 = 1}), Error);
  EXPECT_THROW(radam({.beta2 = 1}), Error);
  EXPECT_THROW(lion({.beta2 = -1}), Error);
  EXPECT_THROW(lars({.coefficient = 0}), Error);
  EXPECT_THROW(lamb({.beta1 = 1}), Error);
}

}  // namespace
}  // namespace lockstep::optim

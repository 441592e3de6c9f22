// Update rules against PyTorch's documented algorithms, written out in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "lockstep/optim/average.h"
#include "lockstep/optim/update_rule.h"

namespace lockstep::optim {
namespace {

constexpr int kSteps = 10;
constexpr std::int64_t kCount = 37;

// One element's history in double: `step(w, g, t)` is the reference, called with t from 1.
using Reference = std::function<void(double& w, double g, int t)>;

double gradient_of(std::int64_t element, int step) {
  RandomStream random(static_cast<std::uint64_t>(element), static_cast<std::uint64_t>(step));
  return random.normal();
}

Rates rates_of(int step, double decay) {
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

void expect_follows(const UpdateRule& rule, double decay, const std::function<Reference()>& reference) {
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

TEST(Adagrad, FollowsItsDefinition) {
  for (const double decay : {0.0, 0.05}) {
    expect_follows(*adagrad({.epsilon = 1e-3}), decay, [=]() -> Reference {
      return [=, s = 0.0](double& w, double g, int t) mutable {
        g += decay * w;
        s += g * g;
        w -= 0.1 / t * g / (std::sqrt(s) + 1e-3);
      };
    });
  }
}

TEST(Adamax, FollowsItsDefinition) {
  for (const double decay : {0.0, 0.05}) {
    expect_follows(*adamax({.beta2 = 0.9, .epsilon = 1e-3}), decay, [=]() -> Reference {
      return [=, m = 0.0, u = 0.0](double& w, double g, int t) mutable {
        g += decay * w;
        m = 0.9 * m + 0.1 * g;
        u = std::max(0.9 * u, std::abs(g) + 1e-3);
        w -= 0.1 / t / (1 - std::pow(0.9, t)) * m / u;
      };
    });
  }
}

TEST(Nadam, FollowsItsDefinition) {
  for (const double decay : {0.0, 0.05}) {
    expect_follows(*nadam({.beta2 = 0.99}), decay, [=]() -> Reference {
      return [=, m = 0.0, v = 0.0, product = 1.0](double& w, double g, int t) mutable {
        const auto momentum = [](int step) { return 0.9 * (1 - 0.5 * std::pow(0.96, 0.004 * step)); };
        g += decay * w;
        m = 0.9 * m + 0.1 * g;
        v = 0.99 * v + 0.01 * g * g;
        product *= momentum(t);
        const double mean = momentum(t + 1) * m / (1 - product * momentum(t + 1)) +
                            (1 - momentum(t)) * g / (1 - product);
        w -= 0.1 / t * mean / (std::sqrt(v / (1 - std::pow(0.99, t))) + 1e-8);
      };
    });
  }
}

// The product of all momenta is kept for the steps in which it counts; a resumed run begins late.
TEST(Nadam, NeedsNoStateOfItsOwn) {
  const auto rule = nadam({});
  double w = 1, m = 0.3, v = 0.2;
  const double g = 0.1;
  double* const states[] = {&m, &v};
  rule->apply(1, &w, &g, states, {.learning_rate = 0.1, .step = 100'000});
  const auto momentum = [](double step) { return 0.9 * (1 - 0.5 * std::pow(0.96, 0.004 * step)); };
  const double mean = momentum(100'001) * (0.9 * 0.3 + 0.1 * g) + (1 - momentum(100'000)) * g;
  const double square = 0.999 * 0.2 + 0.001 * g * g;
  EXPECT_NEAR(w, 1 - 0.1 * mean / (std::sqrt(square) + 1e-8), 1e-12);
}

TEST(Radam, FollowsItsDefinition) {
  for (const double decay : {0.0, 0.05}) {
    for (const double beta2 : {0.5, 0.9, 0.999}) {  // never, soon and not yet rectified
      expect_follows(*radam({.beta2 = beta2}), decay, [=]() -> Reference {
        return [=, m = 0.0, v = 0.0](double& w, double g, int t) mutable {
          g += decay * w;
          m = 0.9 * m + 0.1 * g;
          v = beta2 * v + (1 - beta2) * g * g;
          const double longest = 2 / (1 - beta2) - 1, power = std::pow(beta2, t);
          const double length = longest - 2 * t * power / (1 - power);
          double step = m / (1 - std::pow(0.9, t));
          if (length > 5)
            step *= std::sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)) *
                    std::sqrt(1 - power) / (std::sqrt(v) + 1e-8);
          w -= 0.1 / t * step;
        };
      });
    }
  }
}

TEST(Lion, FollowsItsDefinition) {
  for (const double decay : {0.0, 0.05}) {
    expect_follows(*lion({.beta1 = 0.8, .beta2 = 0.95}), decay, [=]() -> Reference {
      return [=, m = 0.0](double& w, double g, int t) mutable {
        const double d = 0.8 * m + (1 - 0.8) * g;
        w -= 0.1 / t * ((d > 0 ? 1 : d < 0 ? -1 : 0) + decay * w);
        m = 0.95 * m + (1 - 0.95) * g;
      };
    });
  }
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

// A whole parameter of kCount elements in plain f64: its values and the states of an optimizer.
struct WholeReference {
  std::vector<double> w, m, v;
  WholeReference() : w(kCount), m(kCount), v(kCount) {
    for (std::int64_t i = 0; i < kCount; ++i) w[static_cast<std::size_t>(i)] = gradient_of(i, 0);
  }
  static double norm(const std::vector<double>& x) {
    double sum = 0;
    for (const double e : x) sum += e * e;
    return std::sqrt(sum);
  }
};

// Runs the rule on a parameter whose squares are made of two parts, as two ranks make them.
std::vector<double> run_whole(const UpdateRule& rule, double decay, double clip = 0) {
  std::vector<double> w = WholeReference().w, g(kCount), first(kCount), second(kCount);
  for (int t = 1; t <= kSteps; ++t) {
    for (std::int64_t i = 0; i < kCount; ++i) g[static_cast<std::size_t>(i)] = 8 * gradient_of(i, t);
    Rates rates = rates_of(t, decay);
    rates.clip_value = clip;
    Squares sum;
    for (const auto& [begin, end] : {std::pair<std::int64_t, std::int64_t>{0, 16}, {16, kCount}}) {
      double* const states[] = {first.data() + begin, second.data() + begin};
      const Squares part = rule.squares(end - begin, w.data() + begin, g.data() + begin,
                                        std::span(states, rule.states().size()), rates);
      sum.values += part.values;
      sum.steps += part.steps;
    }
    rates.trust = rule.trust(sum, rates);
    double* const states[] = {first.data(), second.data()};
    rule.apply(kCount, w.data(), g.data(), std::span(states, rule.states().size()), rates);
  }
  return w;
}

TEST(Lars, FollowsItsDefinition) {
  for (const double decay : {0.0, 0.05}) {
    WholeReference r;
    for (int t = 1; t <= kSteps; ++t) {
      std::vector<double> g(kCount);
      for (std::int64_t i = 0; i < kCount; ++i) g[static_cast<std::size_t>(i)] = gradient_of(i, t);
      const double values = WholeReference::norm(r.w);
      const double trust = 0.02 * values / (WholeReference::norm(g) + decay * values + 1e-3);
      for (std::size_t i = 0; i < g.size(); ++i) {
        r.m[i] = 0.8 * r.m[i] + 0.1 / t * trust * (g[i] + decay * r.w[i]);
        r.w[i] -= r.m[i];
      }
    }
    const auto got = run_whole(*lars({.momentum = 0.8, .coefficient = 0.02, .epsilon = 1e-3}), decay);
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], r.w[i], 1e-13) << i;
  }
}

TEST(Lamb, FollowsItsDefinition) {
  constexpr double kClip = 0.7;
  for (const double decay : {0.0, 0.05}) {
    WholeReference r;
    for (int t = 1; t <= kSteps; ++t) {
      std::vector<double> u(kCount);
      for (std::size_t i = 0; i < u.size(); ++i) {
        const double g = std::clamp(gradient_of(static_cast<std::int64_t>(i), t), -kClip, kClip);
        r.m[i] = 0.9 * r.m[i] + 0.1 * g;
        r.v[i] = 0.99 * r.v[i] + 0.01 * g * g;
        u[i] = r.m[i] / (1 - std::pow(0.9, t)) / (std::sqrt(r.v[i] / (1 - std::pow(0.99, t))) + 1e-6) + decay * r.w[i];
      }
      const double trust = WholeReference::norm(r.w) / WholeReference::norm(u);
      for (std::size_t i = 0; i < u.size(); ++i) r.w[i] -= 0.1 / t * trust * u[i];
    }
    const auto got = run_whole(*lamb({.beta2 = 0.99}), decay, kClip);
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], r.w[i], 1e-12) << i;
  }
}

TEST(UpdateRules, ANormOfZeroHasNoTrustRatio) {
  for (const auto& rule : {lars({}), lamb({})}) {
    EXPECT_TRUE(rule->uses_norms());
    EXPECT_EQ(rule->trust({.values = 0, .steps = 4}, {}), 1) << rule->name();
    EXPECT_EQ(rule->trust({.values = 4, .steps = 0}, {}), 1) << rule->name();
  }
  EXPECT_EQ(lamb({})->trust({.values = 4, .steps = 16}, {}), 0.5);
  EXPECT_FALSE(adam({})->uses_norms());
  const float one = 1;
  EXPECT_THROW(sgd({})->squares(1, &one, &one, {}, {}), Error);
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

TEST(Averages, FollowTheWeights) {
  const auto rule = with_average(sgd({.momentum = 0.9}), {.ema = 0.9});
  const std::shared_ptr<UpdateRule> plain = sgd({.momentum = 0.9});
  EXPECT_EQ(rule->states(), (std::vector<std::string_view>{"momentum", "average"}));
  EXPECT_EQ(rule->name(), "sgd");
  double w = 1, m = 0, average = 1, plain_w = 1, plain_m = 0, expected = 1;
  for (int t = 1; t <= kSteps; ++t) {
    const double g = gradient_of(0, t);
    double* const states[] = {&m, &average};
    double* const plain_states[] = {&plain_m};
    rule->apply(1, &w, &g, states, rates_of(t, 0.1));
    plain->apply(1, &plain_w, &g, plain_states, rates_of(t, 0.1));
    expected = 0.9 * expected + 0.1 * plain_w;
    EXPECT_EQ(w, plain_w);
    EXPECT_NEAR(average, expected, 1e-14);
  }
}

TEST(Averages, OfSwaAreMovedByTheCallerAlone) {
  const auto rule = with_average(sgd({}), {.swa_start = 3});
  double w = 1, average = 5;
  const double g = 1;
  double* const states[] = {&average};
  rule->apply(1, &w, &g, states, rates_of(1, 0));
  EXPECT_NE(w, 1);
  EXPECT_EQ(average, 5);
  const std::shared_ptr<UpdateRule> plain = sgd({});
  EXPECT_EQ(with_average(plain, {}), plain);
  EXPECT_THROW(with_average(plain, {.ema = 1}), Error);
  EXPECT_THROW(with_average(plain, {.ema = 0.5, .swa_start = 1}), Error);
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

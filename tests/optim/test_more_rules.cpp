// Adagrad, Adamax, NAdam, RAdam, Lion, LARS and LAMB against their papers' algorithms, written out in double; and the
// averages of weights.
#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/optim/average.h"
#include "tests/optim/rule_runs.h"

namespace lockstep::optim {
namespace {

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
        const double mean =
            momentum(t + 1) * m / (1 - product * momentum(t + 1)) + (1 - momentum(t)) * g / (1 - product);
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
      const Squares part =
          rule.squares(end - begin, w.data() + begin, g.data() + begin, std::span(states, rule.states().size()), rates);
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

}  // namespace
}  // namespace lockstep::optim

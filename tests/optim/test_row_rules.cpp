// Rules of the rows of sparse tables against their formulas, which PyTorch lacks (rowwise Adagrad, FTRL), their groups,
// and their limits. Sgd, Adagrad and Adam are compared with PyTorch in tests/parity/rows_tables.py.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/optim/row_rule.h"

namespace lockstep::optim {
namespace {

using Row = std::array<double, 3>;

const Row kGradients[] = {{0.5, -2, 0}, {1, 0.25, -0.125}, {-3, 1, 0.5}};

TEST(RowRules, RowwiseAdagradHasOneSumPerRow) {
  const RowRuleOptions options{.rule = RowRule::AdagradRowwise, .rate_scale = 2, .weight_decay = 0.1, .epsilon = 0.01};
  Row w{1, 2, -1}, expected = w;
  double sum = 0, expected_sum = 0;
  for (const Row& gradient : kGradients) {
    double* const states[] = {&sum};
    RowUpdate<double>(options, {.learning_rate = 0.3, .gradient_scale = 0.5})(3, gradient.data(), w.data(), states);
    Row mean;
    for (std::size_t i = 0; i < 3; ++i) mean[i] = gradient[i] / 2 + 0.1 * expected[i];
    expected_sum += (mean[0] * mean[0] + mean[1] * mean[1] + mean[2] * mean[2]) / 3;
    for (std::size_t i = 0; i < 3; ++i) expected[i] -= 0.6 * mean[i] / (std::sqrt(expected_sum) + 0.01);
    EXPECT_DOUBLE_EQ(sum, expected_sum);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(w[i], expected[i], 1e-15);
  }
}

// McMahan et al. (2013), algorithm 1, with alpha = the learning rate.
TEST(RowRules, FtrlFollowsItsPaper) {
  const double alpha = 0.2, beta = 0.5, l1 = 0.4, l2 = 0.3;
  const RowRuleOptions options{.rule = RowRule::Ftrl, .l1 = l1, .l2 = l2, .beta = beta};
  Row w{}, z{}, n{}, expected{}, expected_z{}, expected_n{};
  bool some_zero = false, some_value = false;
  for (const Row& gradient : kGradients) {
    double* const states[] = {z.data(), n.data()};
    RowUpdate<double>(options, {.learning_rate = alpha})(3, gradient.data(), w.data(), states);
    for (std::size_t i = 0; i < 3; ++i) {
      const double g = gradient[i], sigma = (std::sqrt(expected_n[i] + g * g) - std::sqrt(expected_n[i])) / alpha;
      expected_z[i] += g - sigma * expected[i];
      expected_n[i] += g * g;
      const double sign = expected_z[i] < 0 ? -1 : 1;
      expected[i] = std::abs(expected_z[i]) <= l1
                        ? 0
                        : -(expected_z[i] - sign * l1) / ((beta + std::sqrt(expected_n[i])) / alpha + l2);
      EXPECT_NEAR(w[i], expected[i], 1e-14);
      (w[i] == 0 ? some_zero : some_value) = true;
    }
  }
  EXPECT_TRUE(some_zero && some_value);
}

TEST(RowRules, AreThoseOfTheFirstGroupThatMatches) {
  const TableRules rules{.all = {.rule = RowRule::Adam},
                         .groups = {{"user.*", {.rule = RowRule::Ftrl}}, {"*.weight", {.rule = RowRule::Adagrad}}}};
  EXPECT_EQ(rules.of("user.weight").rule, RowRule::Ftrl);
  EXPECT_EQ(rules.of("item.weight").rule, RowRule::Adagrad);
  EXPECT_EQ(rules.of("item").rule, RowRule::Adam);
  EXPECT_EQ(row_states(rules.all).size(), 2U);
  EXPECT_TRUE(row_states({.rule = RowRule::AdagradRowwise})[0].one_per_row);
}

TEST(RowRules, RefuseSettingsOutOfRange) {
  for (const RowRuleOptions& wrong :
       {RowRuleOptions{.rate_scale = -1}, RowRuleOptions{.weight_decay = -1}, RowRuleOptions{.beta1 = 1},
        RowRuleOptions{.initial_accumulator = -1}, RowRuleOptions{.l1 = -1},
        RowRuleOptions{.rule = RowRule::Ftrl, .beta = 0}, RowRuleOptions{.rule = RowRule::Adagrad, .epsilon = 0},
        RowRuleOptions{.rule = RowRule::AdagradRowwise, .epsilon = 1e-60},
        RowRuleOptions{.rule = RowRule::Adam, .epsilon = 0, .initial_accumulator = 1}})
    EXPECT_THROW(check_row_rule(wrong), Error);
  for (const RowRuleOptions& right :
       {RowRuleOptions{.epsilon = 0}, RowRuleOptions{.rule = RowRule::Adam}, RowRuleOptions{.rule = RowRule::Adagrad},
        RowRuleOptions{.rule = RowRule::Adagrad, .epsilon = 0, .initial_accumulator = 0.1}})
    EXPECT_NO_THROW(check_row_rule(right));
}

}  // namespace
}  // namespace lockstep::optim

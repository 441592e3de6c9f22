// Schedules at points where PyTorch's formulas give known values; and the patterns of parameter groups.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "lockstep/core/error.h"
#include "lockstep/optim/groups.h"
#include "lockstep/optim/plateau.h"
#include "lockstep/optim/schedule.h"

namespace lockstep::optim {
namespace {

TEST(Schedule, ConstantStays) {
  const Schedule s = constant(0.3);
  for (const double epoch : {0.0, 1.5, 1000.0}) EXPECT_EQ(s(epoch), 0.3);
}

TEST(Schedule, StepDecayIsMultiStepLR) {
  const Schedule s = step_decay(0.4, {30, 60, 60, 90}, 0.1);  // a milestone named twice counts twice, as in PyTorch
  const std::pair<double, double> points[] = {{0, 0.4},   {29.99, 0.4}, {30, 0.04}, {59.9, 0.04},
                                              {60, 4e-4}, {90, 4e-5},   {200, 4e-5}};
  for (const auto& [epoch, rate] : points) EXPECT_NEAR(s(epoch), rate, 1e-16) << epoch;
  EXPECT_THROW(step_decay(0.4, {60, 30}, 0.1), Error);
}

TEST(Schedule, CosineIsCosineAnnealingLR) {
  const Schedule s = cosine(0.8, 10, 0.2);
  for (const double epoch : {0.0, 0.5, 3.0, 5.0, 9.75, 10.0}) {
    EXPECT_NEAR(s(epoch), 0.2 + (0.8 - 0.2) * (1 + std::cos(std::numbers::pi * epoch / 10)) / 2, 1e-15) << epoch;
  }
  EXPECT_DOUBLE_EQ(s(0), 0.8);
  EXPECT_DOUBLE_EQ(s(5), 0.5);
  EXPECT_DOUBLE_EQ(s(10), 0.2);
  EXPECT_DOUBLE_EQ(s(12), 0.2);  // at its end it stays
  EXPECT_THROW(cosine(0.8, 0), Error);
}

TEST(Schedule, OneCycleIsOneCycleLR) {
  const Schedule s = one_cycle({.rate = 1, .epochs = 20, .rising = 0.25, .start_divisor = 10, .final_divisor = 100});
  const auto annealed = [](double from, double to, double x) {
    return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * x));
  };
  EXPECT_DOUBLE_EQ(s(0), 0.1);
  EXPECT_DOUBLE_EQ(s(2), annealed(0.1, 1, 0.4));
  EXPECT_DOUBLE_EQ(s(5), 1);
  EXPECT_DOUBLE_EQ(s(11), annealed(1, 0.001, 0.4));
  EXPECT_NEAR(s(20), 0.001, 1e-15);
  EXPECT_NEAR(s(25), 0.001, 1e-15);
  EXPECT_THROW(one_cycle({.rate = 1, .epochs = 20, .rising = 0}), Error);
  EXPECT_THROW(one_cycle({.rate = 1, .epochs = 0}), Error);
}

TEST(Schedule, WarmUpIsLinearUpToTheScheduleItself) {
  const Schedule s = warm_up(step_decay(0.4, {3}, 0.1), 5, 0.2);
  EXPECT_DOUBLE_EQ(s(0), 0.4 * 0.2);
  EXPECT_DOUBLE_EQ(s(2.5), 0.4 * 0.6);
  EXPECT_DOUBLE_EQ(s(4), 0.04 * 0.84);  // it scales the schedule's own rate
  EXPECT_DOUBLE_EQ(s(5), 0.04);
  EXPECT_DOUBLE_EQ(warm_up(constant(0.7), 0)(0), 0.7);
  EXPECT_THROW(warm_up(constant(0.7), -1), Error);
}

TEST(Schedule, CosineRestartsIsCosineAnnealingWarmRestarts) {
  const auto part = [](double x) { return 0.2 + (0.8 - 0.2) * (1 + std::cos(std::numbers::pi * x)) / 2; };
  const Schedule even = cosine_restarts({.rate = 0.8, .epochs = 4, .minimum = 0.2});
  for (const double epoch : {0.0, 1.0, 2.5, 3.75}) {
    EXPECT_NEAR(even(epoch), part(epoch / 4), 1e-15) << epoch;
    EXPECT_NEAR(even(epoch + 4), part(epoch / 4), 1e-15) << epoch;
    EXPECT_NEAR(even(epoch + 400), part(epoch / 4), 1e-15) << epoch;
  }
  const Schedule growing = cosine_restarts({.rate = 0.8, .epochs = 4, .growth = 2, .minimum = 0.2});  // 4, 8, 16, ...
  for (const auto& [epoch, x] : {std::pair{3.0, 3.0 / 4},
                                 {4.0, 0.0},
                                 {6.0, 2.0 / 8},
                                 {11.5, 7.5 / 8},
                                 {12.0, 0.0},
                                 {20.0, 0.5},
                                 {28.0, 0.0},
                                 {44.0, 0.5}}) {
    EXPECT_NEAR(growing(epoch), part(x), 1e-15) << epoch;
  }
  EXPECT_THROW(cosine_restarts({.rate = 1, .epochs = 0}), Error);
  EXPECT_THROW(cosine_restarts({.rate = 1, .epochs = 1, .growth = 0.5}), Error);
}

TEST(Schedule, PolynomialIsPolynomialLR) {
  const Schedule s = polynomial({.rate = 0.8, .epochs = 10, .power = 2});
  for (const double epoch : {0.0, 1.0, 4.5, 10.0}) EXPECT_NEAR(s(epoch), 0.8 * std::pow(1 - epoch / 10, 2), 1e-15);
  EXPECT_EQ(s(11), 0) << "at its end it stays";
  const Schedule line = polynomial({.rate = 0.8, .epochs = 10, .minimum = 0.2});
  EXPECT_NEAR(line(5), 0.5, 1e-15);
  EXPECT_NEAR(line(20), 0.2, 1e-15);
  EXPECT_THROW(polynomial({.rate = 1, .epochs = 0}), Error);
  EXPECT_THROW(polynomial({.rate = 1, .epochs = 1, .power = 0}), Error);
}

TEST(Schedule, ExponentialIsExponentialLR) {
  const Schedule s = exponential(0.8, 0.9);
  double rate = 0.8;
  for (int epoch = 0; epoch < 30; ++epoch, rate *= 0.9) EXPECT_NEAR(s(epoch), rate, 1e-14) << epoch;
  EXPECT_NEAR(s(0.5), 0.8 * std::sqrt(0.9), 1e-15);
  EXPECT_THROW(exponential(0.8, 0), Error);
}

TEST(Schedule, InverseSquareRootFallsAfterItsTimescale) {
  const Schedule s = inverse_square_root(0.8, 4);
  for (const double epoch : {0.0, 3.0, 4.0}) EXPECT_EQ(s(epoch), 0.8);
  EXPECT_DOUBLE_EQ(s(16), 0.4);
  EXPECT_DOUBLE_EQ(s(400), 0.08);
  EXPECT_THROW(inverse_square_root(0.8, 0), Error);
}

// ReduceLROnPlateau step by step, as its documentation describes it.
TEST(Plateau, LowersTheRateAfterItsPatience) {
  const auto factors = [](const PlateauOptions& options, const std::vector<double>& losses, double least = 0) {
    Plateau plateau(options, least);
    std::vector<double> all;
    for (const double loss : losses) {
      const double before = plateau.factor();
      const bool lowered = plateau.add(loss);
      EXPECT_EQ(lowered, plateau.factor() < before);
      all.push_back(plateau.factor());
    }
    return all;
  };
  using Factors = std::vector<double>;
  const double nan = std::nan("");
  EXPECT_EQ(factors({.factor = 0.5, .patience = 1}, {3, 2, 2, 2, 2, 2, 1}), Factors({1, 1, 1, 0.5, 0.5, 0.25, 0.25}));
  EXPECT_EQ(factors({.factor = 0.5, .patience = 0}, {3, 3, 2, 2, nan, 1, INFINITY}),
            Factors({1, 0.5, 0.5, 0.25, 0.125, 0.125, 0.0625}));
  EXPECT_EQ(factors({.factor = 0.5, .patience = 0, .cooldown = 2}, {3, 3, 3, 3, 3, 3}),
            Factors({1, 0.5, 0.5, 0.5, 0.25, 0.25}));
  EXPECT_EQ(factors({.factor = 0.5, .patience = 0}, {3, 3, 3, 3}, 0.3), Factors({1, 0.5, 0.3, 0.3}));
  EXPECT_EQ(factors({.factor = 0.5, .patience = 0, .threshold = 0.1}, {3, 2.8, 2.6, 2.5}),
            Factors({1, 0.5, 0.5, 0.25}));
  EXPECT_EQ(factors({.factor = 0.5, .patience = 0, .threshold = 0.1}, {-1, -1, -1.05, -1.2}),
            Factors({1, 0.5, 0.25, 0.25}))
      << "a threshold is relative to the size of the loss";
}

TEST(Plateau, GoesOnFromItsState) {
  const std::vector<double> losses{3, 2, 2.5, 2, 2, 1.9, 1.9, 1.9, 1.9, 1.9, 1.9};
  const PlateauOptions options{.factor = 0.5, .patience = 1, .cooldown = 1};
  for (std::size_t stop = 0; stop <= losses.size(); ++stop) {
    Plateau whole(options), first(options), second(options);
    for (const double loss : losses) whole.add(loss);
    for (std::size_t i = 0; i < stop; ++i) first.add(losses[i]);
    second.restore(first.state());
    for (std::size_t i = stop; i < losses.size(); ++i) second.add(losses[i]);
    EXPECT_EQ(second.factor(), whole.factor()) << stop;
    EXPECT_LT(whole.factor(), 1);
  }
}

TEST(Plateau, RefusesOptionsOutOfRange) {
  for (const PlateauOptions& options :
       {PlateauOptions{.factor = 1}, PlateauOptions{.factor = 0}, PlateauOptions{.patience = -1},
        PlateauOptions{.threshold = 1}, PlateauOptions{.cooldown = -1}}) {
    EXPECT_THROW(Plateau{options}, Error);
  }
}

TEST(Groups, StarsStandForAnyCharacters) {
  EXPECT_TRUE(matches("fc.*", "fc.weight"));
  EXPECT_TRUE(matches("*.bias", "layer1.0.conv1.bias"));
  EXPECT_TRUE(matches("layer*.bn*.weight", "layer1.0.bn1.weight"));
  EXPECT_TRUE(matches("fc.weight", "fc.weight"));
  EXPECT_FALSE(matches("fc", "fc.weight"));
  EXPECT_FALSE(matches("fc.*", "head.fc.weight"));
  EXPECT_FALSE(matches("*.bias", "bias"));
}

TEST(Groups, EachSettingIsThatOfTheFirstThatHasIt) {
  const std::vector<ParameterGroup> groups{{.pattern = "a.*", .rate_scale = 1},
                                           {.pattern = "*.bias", .rate_scale = 2, .weight_decay = 0}};
  const auto expect = [&](const char* name, std::optional<double> rate, std::optional<double> decay) {
    const ParameterGroup settings = settings_of(groups, name);
    EXPECT_EQ(settings.rate_scale, rate) << name;
    EXPECT_EQ(settings.weight_decay, decay) << name;
  };
  expect("a.bias", 1, 0);
  expect("a.weight", 1, {});
  expect("b.bias", 2, 0);
  expect("b.weight", {}, {});
}

}  // namespace
}  // namespace lockstep::optim

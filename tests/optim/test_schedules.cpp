// Schedules at points where PyTorch's formulas give known values; and the patterns of parameter groups.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "lockstep/core/error.h"
#include "lockstep/optim/groups.h"
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

TEST(Groups, StarsStandForAnyCharacters) {
  EXPECT_TRUE(matches("fc.*", "fc.weight"));
  EXPECT_TRUE(matches("*.bias", "layer1.0.conv1.bias"));
  EXPECT_TRUE(matches("layer*.bn*.weight", "layer1.0.bn1.weight"));
  EXPECT_TRUE(matches("fc.weight", "fc.weight"));
  EXPECT_FALSE(matches("fc", "fc.weight"));
  EXPECT_FALSE(matches("fc.*", "head.fc.weight"));
  EXPECT_FALSE(matches("*.bias", "bias"));
}

TEST(Groups, TheFirstThatFitsIsFound) {
  const std::vector<ParameterGroup> groups{{.pattern = "a.*", .rate_scale = 1}, {.pattern = "*.bias", .rate_scale = 2}};
  EXPECT_EQ(find_group(groups, "a.bias"), &groups[0]);
  EXPECT_EQ(find_group(groups, "b.bias"), &groups[1]);
  EXPECT_EQ(find_group(groups, "b.weight"), nullptr);
}

}  // namespace
}  // namespace lockstep::optim

// Schedules and rules by their options are those made by hand.
#include <gtest/gtest.h>

#include "lockstep/optim/rule_options.h"
#include "lockstep/optim/schedule_options.h"

namespace lockstep::optim {
namespace {

using Kind = ScheduleOptions::Kind;
constexpr double kEpochs = 12;
constexpr std::int64_t kBatch = 512;

void expect_equal(const ScheduleOptions& options, const Schedule& by_hand) {
  const Schedule made = make_schedule(options, kEpochs, kBatch);
  for (double epoch = 0; epoch <= kEpochs; epoch += 0.25) EXPECT_EQ(made(epoch), by_hand(epoch)) << epoch;
}

TEST(ScheduleOptions, EachKindIsItsFunction) {
  expect_equal({.kind = Kind::Constant, .peak = 0.3}, constant(0.3));
  expect_equal({.kind = Kind::Cosine, .peak = 0.3, .minimum = 0.1}, cosine(0.3, kEpochs, 0.1));
  expect_equal({.kind = Kind::Step, .peak = 0.3, .step_epochs = 5, .step_gamma = 0.5}, step_decay(0.3, {5, 10}, 0.5));
  expect_equal({.kind = Kind::Step, .peak = 0.3, .step_gamma = 0.5, .milestones = {2, 7}},
               step_decay(0.3, {2, 7}, 0.5));
  expect_equal({.kind = Kind::OneCycle, .peak = 0.3, .cycle_rise = 0.5, .cycle_start = 10, .cycle_end = 100},
               one_cycle({.rate = 0.3, .epochs = kEpochs, .rising = 0.5, .start_divisor = 10, .final_divisor = 100}));
  expect_equal({.kind = Kind::CosineRestarts, .peak = 0.3, .minimum = 0.1, .restart_epochs = 2, .restart_growth = 3},
               cosine_restarts({.rate = 0.3, .epochs = 2, .growth = 3, .minimum = 0.1}));
  expect_equal({.kind = Kind::Polynomial, .peak = 0.3, .minimum = 0.1, .power = 2},
               polynomial({.rate = 0.3, .epochs = kEpochs, .power = 2, .minimum = 0.1}));
  expect_equal({.kind = Kind::Exponential, .peak = 0.3, .gamma = 0.8}, exponential(0.3, 0.8));
  expect_equal({.kind = Kind::InverseSqrt, .peak = 0.3}, inverse_square_root(0.3, 1));
  expect_equal({.kind = Kind::InverseSqrt, .peak = 0.3, .timescale = 3}, inverse_square_root(0.3, 3));
  expect_equal({.kind = Kind::Plateau, .peak = 0.3}, constant(0.3));
}

// Up in a straight line, and down from the peak at the end of the warm-up (Vaswani et al.).
TEST(ScheduleOptions, AnInverseSquareRootBeginsAtTheEndOfTheWarmUp) {
  expect_equal({.kind = Kind::InverseSqrt, .peak = 0.3, .warmup_epochs = 4},
               warm_up(inverse_square_root(0.3, 4), 4, 0.1));
}

TEST(ScheduleOptions, EveryKindWarmsUp) {
  for (const Kind kind : {Kind::Constant, Kind::Step, Kind::Cosine, Kind::CosineRestarts, Kind::Polynomial,
                          Kind::Exponential, Kind::InverseSqrt, Kind::Plateau}) {
    const Schedule made = make_schedule({.kind = kind, .peak = 0.4, .warmup_epochs = 4}, kEpochs, kBatch);
    EXPECT_NEAR(made(0), 0.04, 1e-15);
    EXPECT_GT(made(2), made(0));
  }
}

TEST(ScheduleOptions, AScaledRateFollowsTheGlobalBatch) {
  expect_equal({.kind = Kind::Constant, .peak = 0.3, .scaled = true, .scale_batch = 128}, constant(0.3 * 512 / 128));
}

TEST(ScheduleOptions, AWarmUpBeginsAtItsPartOfTheRate) {
  expect_equal({.kind = Kind::Constant, .peak = 0.4, .warmup_epochs = 4}, warm_up(constant(0.4), 4));
  const Schedule rising =
      make_schedule({.kind = Kind::Constant, .peak = 0.4, .warmup_epochs = 4, .warmup_start = 0.5}, kEpochs, kBatch);
  EXPECT_DOUBLE_EQ(rising(0), 0.2);
  EXPECT_DOUBLE_EQ(rising(2), 0.3);  // half of the rise
  EXPECT_DOUBLE_EQ(rising(4), 0.4);
  EXPECT_DOUBLE_EQ(rising(9), 0.4);
}

TEST(RuleOptions, EachRuleIsMadeByItsName) {
  EXPECT_EQ(make_rule({})->name(), sgd({})->name());
  EXPECT_EQ(make_rule({.rule = Rule::Adam})->name(), adam({})->name());
  EXPECT_EQ(make_rule({.rule = Rule::AdamW})->name(), adam({.decoupled_decay = true})->name());
  EXPECT_EQ(make_rule({.rule = Rule::Rmsprop, .sgd = {}})->states().size(), 1u);
  EXPECT_EQ(make_rule({.rule = Rule::Rmsprop, .rmsprop = {.centered = true}})->states().size(), 3u);
  EXPECT_EQ(make_rule({})->states().size(), 1u);  // momentum, which programs have by default
}

}  // namespace
}  // namespace lockstep::optim

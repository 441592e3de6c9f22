// GradientDecision by itself: clipping, the guard's verdict, the function of the caller, and the noise.
#include "lockstep/parallel/guard/gradient_decision.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "tests/parallel/step_rig.h"

namespace lockstep::test {
namespace {

using parallel::GradientDecision;
using parallel::GradientFinding;
using parallel::StepState;
using parallel::StepVerdict;

// Squares by block of the model's two buckets: 2 blocks of "a" and "b", 1 of "c". The sums have norm 6.
constexpr std::array<double, 3> kSquares{16, 4, 16};
constexpr double kScale = 0.5, kNorm = 3;

class GradientDecisionTest : public ::testing::Test {
 protected:
  GradientDecision decision(const GradientDecision::Options& options) const {
    return {model_.store, kSquares, noise_, options};
  }
  static StepState step() { return {.update = {.gradient_scale = kScale}, .has_samples = true}; }

  StepModel model_{1};
  std::array<double, parallel::kNoiseSums> noise_{};
};

TEST_F(GradientDecisionTest, WithoutOptionsNothingWaitsAndNothingChanges) {
  GradientDecision alone = decision({});
  EXPECT_FALSE(alone.waits_for_gradient());
  EXPECT_FALSE(alone.judges_norm());
  EXPECT_EQ(alone.guard(), nullptr);
  StepState state = step();
  alone.decide(state, 8);
  EXPECT_EQ(state.update.gradient_scale, kScale);
  EXPECT_EQ(alone.norm(), 0);
}

TEST_F(GradientDecisionTest, ClipsTheNormOfAllGradients) {
  for (const double limit : {1.5, 30.0}) {
    GradientDecision clips = decision({.clip_norm = limit});
    EXPECT_TRUE(clips.waits_for_gradient());
    StepState state = step();
    clips.decide(state, 8);
    EXPECT_DOUBLE_EQ(clips.norm(), kNorm);
    EXPECT_DOUBLE_EQ(state.update.gradient_scale, limit < kNorm ? kScale * limit / (kNorm + 1e-6) : kScale);
  }
  GradientDecision further = decision({.clip_norm = 30});
  StepState state = step();
  further.decide(state, 8, 64);  // of sparse tables
  EXPECT_DOUBLE_EQ(further.norm(), 5);
}

TEST_F(GradientDecisionTest, HoldsBackAStepOverALimitOrReportsIt) {
  for (const bool hold : {true, false}) {
    GradientDecision guarded = decision({.guard = true, .hold = hold, .limits = {.norm = 2}});
    StepState state = step();
    guarded.decide(state, 8);
    EXPECT_EQ(state.verdict, hold ? StepVerdict::BadGradient : StepVerdict::Apply);
    EXPECT_EQ(guarded.finding().level, GradientFinding::Level::Act);
    EXPECT_EQ(guarded.guard()->state()[0], hold ? 0 : 1) << "a step that is held back counts in no mean";
    StepState empty = step();
    empty.has_samples = false;
    guarded.decide(empty, 0);
    EXPECT_EQ(guarded.finding().level, GradientFinding::Level::Fine) << "nothing is to be judged";
  }
}

TEST_F(GradientDecisionTest, TheFunctionOfTheCallerGivesAFactorOfStepsThatAreApplied) {
  GradientDecision inspected = decision({});
  int calls = 0;
  inspected.inspect_by([&] {
    ++calls;
    return 0.25;
  });
  EXPECT_TRUE(inspected.waits_for_gradient());
  StepState state = step(), bad = step();
  inspected.decide(state, 8);
  bad.verdict = StepVerdict::BadLoss;
  inspected.decide(bad, 8);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(state.update.gradient_scale, kScale * 0.25);
  EXPECT_EQ(bad.update.gradient_scale, kScale);
}

TEST_F(GradientDecisionTest, EstimatesTheNoiseOfTheGradientBeforeClipping) {
  noise_ = {2 * 10, 2 * 0.25, 2};  // two shards of 4 samples
  GradientDecision noisy = decision({.clip_norm = 0.1, .noise = true});
  StepState state = step();
  noisy.decide(state, 8);
  const auto expected = parallel::estimate_noise(noise_, kNorm * kNorm, 8);
  ASSERT_TRUE(noisy.noise() && expected);
  EXPECT_DOUBLE_EQ(noisy.noise()->trace, expected->trace);
  state.verdict = StepVerdict::Damaged;
  noisy.decide(state, 8);
  EXPECT_FALSE(noisy.noise());
}

}  // namespace
}  // namespace lockstep::test

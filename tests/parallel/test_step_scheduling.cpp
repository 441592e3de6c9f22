// When a bucket leaves, which thread drives it, when it is updated, and what the next forward pass waits for: the
// schedulers of a step one by one, without MPI.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

#include "lockstep/core/backoff.h"
#include "tests/parallel/step_rig.h"

namespace lockstep::test {
namespace {

// --- ReductionScheduler

TEST(ReductionScheduler, ABucketLeavesWhenItsLastGradientIsFinal) {
  StepRig rig;
  StepRank& rank = rig[0];
  rank.begin();
  rank.end_forward();
  EXPECT_EQ(rank.reductions.retire(&rank.model.b), 0);
  EXPECT_EQ(rank.reductions.started(), 0U);
  rank.reductions.retire(&rank.model.a);
  EXPECT_EQ(rank.reductions.started(), 1U);
  EXPECT_EQ(rank.reductions.retire(&rank.model.c), 1);
  EXPECT_EQ(rank.reductions.started(), 2U);
}

TEST(ReductionScheduler, BucketsLeaveInTheOrderThatAllRanksShare) {
  StepRig rig;
  StepRank& rank = rig[0];
  rank.begin();
  rank.end_forward();
  rank.retire(rank.model.c, 1);
  EXPECT_EQ(rank.reductions.started(), 0U) << "bucket 1 waits for bucket 0";
  rank.retire(rank.model.a, 1);
  rank.reductions.zero(0);
  EXPECT_EQ(rank.reductions.started(), 2U);
}

TEST(ReductionScheduler, ShardsAreJoinedAndTheLastOneLeaves) {
  StepRig rig({.shards = 3});
  StepRank& rank = rig[0];
  rank.begin();
  for (int shard = 0; shard < 3; ++shard) {
    ASSERT_EQ(rank.reductions.is_last_shard(), shard == 2);
    EXPECT_EQ(rank.reductions.statistics()[0], 0) << "zero at first";
    rank.reductions.statistics()[0] = 10 + shard;
    if (shard < 2) {
      rank.sums.end_shard(0);
      rank.reductions.end_statistics();
    } else {
      rank.end_forward();
    }
    rank.retire_all(static_cast<float>(shard + 1));
    EXPECT_EQ(rank.reductions.started(), shard == 2 ? 2U : 0U);
    rank.reductions.end_shard();
  }
  while (!rank.reductions.is_gradient_reduced()) rank.driver.advance();
  EXPECT_EQ(*static_cast<float*>(rank.model.store.gradient(&rank.model.c, 0)), 1 + 2 + 3);
  EXPECT_EQ(rank.reductions.sums_of_statistics()[0], 10 + 11 + 12);
}

TEST(ReductionScheduler, SquaresFollowTheLastBucket) {
  StepRig rig({.update = {.gradient = {.clip_norm = 1}}});
  StepRank& rank = rig[0];
  rank.begin();
  rank.end_forward();
  EXPECT_FALSE(rank.reductions.is_gradient_reduced());
  rank.retire_all(2);
  while (!rank.reductions.is_gradient_reduced()) rank.driver.advance();
  double total = 0;
  for (double square : rig.memory.squares(0)) total += square;
  EXPECT_EQ(total, 4 * (1500 + 40 + 700));
}

// --- ProgressDriver

TEST(ProgressDriver, WithoutAThreadTheCallerWorks) {
  int calls = 0;
  parallel::ProgressDriver driver([&] { return ++calls < 2; });
  EXPECT_TRUE(driver.advance());
  EXPECT_FALSE(driver.advance());
  EXPECT_EQ(calls, 2);
  EXPECT_FALSE(driver.has_thread());
  driver.wake();  // nothing to wake
  driver.sleep();
}

TEST(ProgressDriver, AThreadWorksWhileItIsAwake) {
  std::atomic<int> calls{0};
  std::atomic<std::thread::id> worker{};
  parallel::ProgressDriver driver([&] {
    worker = std::this_thread::get_id();
    ++calls;
    return true;
  });
  driver.use_thread(true);
  ASSERT_TRUE(driver.has_thread());
  EXPECT_FALSE(driver.advance());
  driver.wake();
  for (Backoff wait; calls < 10; wait.pause()) driver.advance();
  EXPECT_NE(worker.load(), std::this_thread::get_id());
  driver.use_thread(false);
  EXPECT_TRUE(driver.advance());
  EXPECT_EQ(worker.load(), std::this_thread::get_id());
}

TEST(ProgressDriver, AnErrorOfTheThreadIsTheCallers) {
  parallel::ProgressDriver driver([]() -> bool { fail("test", "the network is gone"); });
  EXPECT_THROW(driver.advance(), Error);
  driver.use_thread(true);
  driver.wake();
  const auto advance_for_ever = [&] {
    for (Backoff wait;; wait.pause()) driver.advance();
  };
  EXPECT_THROW(advance_for_ever(), Error);
}

// --- StepUpdate and UpdateScheduler

TEST(StepUpdate, BucketsAreUpdatedWhenSumsAndGradientsHaveCome) {
  StepRig rig;
  StepRank& rank = rig[0];
  EXPECT_FALSE(rank.update.moves());
  rank.begin();
  rank.end_forward(4);
  EXPECT_TRUE(rank.update.moves());
  rank.retire_all(2);
  EXPECT_EQ(rank.model.first_value(0), 1) << "nothing drives";
  rank.finish();
  EXPECT_EQ(rank.model.first_value(0), 1 - 0.5F * 2 / 4);
  EXPECT_EQ(rank.model.first_value(1), 1 - 0.5F * 2 / 4);
  EXPECT_EQ(rank.update.ended(), 1);
  EXPECT_FALSE(rank.update.moves());
}

TEST(StepUpdate, ABucketIsUpdatedBeforeTheNextOneLeaves) {
  StepRig rig;
  StepRank& rank = rig[0];
  rank.begin();
  rank.end_forward();
  rank.retire(rank.model.b, 1);
  rank.retire(rank.model.a, 1);
  while (rank.model.first_value(0) == 1) rank.update.advance();
  EXPECT_TRUE(rank.update.buckets().is_done(0));
  EXPECT_TRUE(rank.update.buckets().late());
  rank.retire(rank.model.c, 1);
  rank.finish();
  EXPECT_FALSE(rank.update.buckets().late());
}

TEST(StepUpdate, AStepWithoutSamplesOrWithABadLossChangesNothing) {
  for (const bool samples : {false, true}) {
    StepRig rig({.update = {.hold_loss = true}});
    StepRank& rank = rig[0];
    rank.begin();
    rank.end_forward(samples ? 1 : 0, samples ? std::numeric_limits<double>::quiet_NaN() : 0);
    rank.retire_all(3);
    rank.finish();
    EXPECT_EQ(rank.update.state().verdict, samples ? parallel::StepVerdict::BadLoss : parallel::StepVerdict::Apply);
    EXPECT_FALSE(rank.update.state().applies());
    EXPECT_EQ(rank.model.first_value(0), 1);
  }
}

TEST(StepUpdate, TheWholeGradientMayDecide) {
  StepRig rig;
  StepRank& rank = rig[0];
  int inspections = 0;
  rank.update.decision().inspect_by([&] {
    ++inspections;
    EXPECT_EQ(*static_cast<float*>(rank.model.store.gradient(&rank.model.c, 0)), 2);
    EXPECT_EQ(rank.model.first_value(0), 1) << "no bucket is updated before";
    return 0.25;
  });
  rank.begin();
  rank.end_forward();
  rank.retire(rank.model.b, 2);
  rank.retire(rank.model.a, 2);
  for (int i = 0; i < 10; ++i) rank.update.advance();
  EXPECT_EQ(inspections, 0);
  rank.retire(rank.model.c, 2);
  rank.finish();
  EXPECT_EQ(inspections, 1);
  EXPECT_EQ(rank.model.first_value(0), 1 - 0.5F * 2 / 4);
}

// While the function waits for other ranks it drives communication, as the engine does for it.
TEST(StepUpdate, NothingIsUpdatedBeforeTheFunctionOfTheCallerReturns) {
  StepRig rig;
  StepRank& rank = rig[0];
  int driven = 0, before = 0;
  rank.meanwhile = [&] { ++driven; };
  rank.update.decision().inspect_by([&] {
    before = driven;
    for (int i = 0; i < 10; ++i) rank.update.advance();
    EXPECT_EQ(rank.model.first_value(0), 1);
    return 0.25;
  });
  rank.begin();
  rank.end_forward();
  rank.retire_all(2);
  rank.finish();
  EXPECT_GE(driven, before + 10);
  EXPECT_EQ(rank.model.first_value(0), 1 - 0.5F * 2 / 4);
  EXPECT_EQ(rank.model.first_value(1), 1 - 0.5F * 2 / 4);
}

TEST(StepUpdate, AFunctionOfTheCallerThatThrowsEndsTheStep) {
  StepRig rig;
  StepRank& rank = rig[0];
  rank.update.decision().inspect_by([]() -> double { fail("test", "the factor is unknown"); });
  rank.begin();
  rank.end_forward();
  rank.retire_all(2);
  EXPECT_THROW(rank.finish(), Error);
  for (int i = 0; i < 10; ++i) rank.update.advance();
  EXPECT_EQ(rank.model.first_value(0), 1) << "updated without the factor";
}

TEST(StepUpdate, ClipsAndHoldsBackByTheNorm) {
  StepRig rig({.update = {.gradient = {.clip_norm = 1, .guard = true, .hold = true, .limits = {.norm = 200}}}});
  StepRank& rank = rig[0];
  for (const float gradient : {2.0F, 10.0F}) {
    const float before = rank.model.first_value(0);
    rank.begin();
    rank.end_forward();
    rank.retire_all(gradient);
    rank.finish();
    EXPECT_NEAR(rank.update.decision().norm(), gradient * std::sqrt(2240.0), 1e-3);
    const bool held = gradient > 4;
    EXPECT_EQ(rank.update.state().verdict, held ? parallel::StepVerdict::BadGradient : parallel::StepVerdict::Apply);
    EXPECT_NEAR(rank.model.first_value(0), held ? before : before - 0.5 / std::sqrt(2240.0), 1e-6);
  }
}

TEST(StepUpdate, RanksInDifferentPlacesAreTold) {
  StepRig rig({.ranks = 2});
  rig[0].begin(1, parallel::position_word(2, 30));
  rig[1].begin(1, parallel::position_word(2, 40));
  for (StepRank& rank : rig.ranks) rank.end_forward();
  std::string said;
  try {
    for (int i = 0; i < 100; ++i) rig[0].update.advance();
  } catch (const Error& error) {
    said = error.what();
  }
  EXPECT_EQ(said,
            "[ranks] the position in the data set differs: rank 1 has sample 40 of epoch 3, rank 0 has sample 30 of "
            "epoch 3");
}

// --- UpdateGate

TEST(UpdateGate, ThePassIsFreeInAStepAndAfterItsUpdate) {
  StepRig rig;
  StepRank& rank = rig[0];
  rank.gate.pass(0);  // before the first step
  rank.begin();
  rank.end_forward();
  rank.gate.pass(0);  // backward reads values of this step
  rank.retire_all(1);
  rank.finish();
  rank.gate.pass_all();
  EXPECT_EQ(rank.timer.times().earlier, 0) << "nothing was waited for";
}

TEST(UpdateGate, WaitsForALateBucketThatAnotherRankHolds) {
  StepRig rig({.ranks = 2, .may_be_late = true});
  for (StepRank& rank : rig.ranks) {
    rank.begin();
    rank.end_forward();
  }
  StepRank &first = rig[0], &second = rig[1];
  first.retire_all(1);
  second.retire(second.model.b, 3);
  second.retire(second.model.a, 3);  // bucket 1 stays with rank 1
  first.meanwhile = [&] { second.update.advance(); };
  first.finish();
  ASSERT_TRUE(first.gate.is_late_allowed());
  ASSERT_TRUE(first.update.buckets().late());
  EXPECT_EQ(first.update.ended(), 1);
  first.gate.pass(0);
  EXPECT_EQ(first.model.first_value(0), 1 - 0.5F * (1 + 3) / 2);
  EXPECT_EQ(first.model.first_value(1), 1);
  int looks = 0;
  first.meanwhile = [&] {
    if (++looks == 5) second.retire(second.model.c, 3);
    second.update.advance();
  };
  first.gate.pass(1);
  EXPECT_GE(looks, 5);
  EXPECT_EQ(first.model.first_value(1), 1 - 0.5F * (1 + 3) / 2);
  EXPECT_FALSE(first.update.buckets().late());
  EXPECT_GT(first.timer.times().earlier, 0);
}

TEST(UpdateGate, AStepThatIsHeldBackOrDecidedByItsGradientIsNotLate) {
  StepRig rig({.may_be_late = true});
  StepRank& rank = rig[0];
  EXPECT_TRUE(rank.gate.is_late_allowed());
  rank.update.decision().inspect_by([] { return 1.0; });
  EXPECT_FALSE(rank.gate.is_late_allowed());
}

// --- MemoryGuard in a step

TEST(MemoryGuard, DamageBetweenStepsIsInTheNextStepsWords) {
  StepRig rig({.guard = {.verify_every = 1, .copy_of = {0}}});
  StepRank& rank = rig[0];
  for (const bool damaged : {false, true}) {
    if (damaged) rank.model.store.buckets()[1].values[2] ^= std::byte{4};
    rank.begin(damaged ? 2 : 1);
    rank.end_forward();
    rank.retire_all(1);
    rank.finish();
    EXPECT_EQ(rank.update.state().verdict, damaged ? parallel::StepVerdict::Damaged : parallel::StepVerdict::Apply);
    EXPECT_EQ(rank.sums.memory_of(0).damage != 0, damaged);
  }
  EXPECT_FALSE(rank.guard.is_intact());
  rank.guard.forget();
  EXPECT_TRUE(rank.guard.is_intact()) << "what is there counts";
}

TEST(MemoryGuard, DamageAfterTheWordsLeftIsToldInTheNextStep) {
  StepRig rig({.guard = {.verify_every = 1, .copy_of = {0}}});
  StepRank& rank = rig[0];
  rank.begin(1);
  rank.end_forward();
  rank.model.store.buckets()[1].values[2] ^= std::byte{4};
  rank.retire_all(1);
  rank.finish();
  EXPECT_EQ(rank.update.state().verdict, parallel::StepVerdict::Apply);
  EXPECT_FALSE(rank.guard.is_intact());
  rank.begin(2);
  rank.end_forward();
  rank.retire_all(1);
  rank.finish();
  EXPECT_EQ(rank.update.state().verdict, parallel::StepVerdict::Damaged);
}

TEST(MemoryGuard, CopiesAreCompared) {
  StepRig rig({.ranks = 2, .guard = {.compare_every = 2, .copy_of = {0, 1}}});
  rig[1].model.store.buckets()[0].values[2] ^= std::byte{4};
  for (std::int64_t step = 1; step <= 2; ++step) {
    for (StepRank& rank : rig.ranks) {
      rank.begin(step);
      rank.end_forward();
      rank.retire_all(1);
    }
    rig[0].meanwhile = [&] { rig[1].update.advance(); };
    rig[0].finish();
    rig[0].meanwhile = nullptr;
    rig[1].meanwhile = [&] { rig[0].driver.advance(); };
    rig[1].finish();
    rig[1].meanwhile = nullptr;
    for (StepRank& rank : rig.ranks)
      EXPECT_EQ(rank.update.state().verdict, step == 2 ? parallel::StepVerdict::Damaged : parallel::StepVerdict::Apply)
          << step;
  }
}

}  // namespace
}  // namespace lockstep::test

#include "lockstep/train/monitor/watch_verdict.h"

#include <gtest/gtest.h>

#include <limits>
#include <type_traits>

namespace lockstep::train {
namespace {

using Phase = Heartbeat::Phase;
using Indices = std::vector<std::size_t>;

constexpr std::uint64_t kNobody = std::numeric_limits<std::uint64_t>::max();
const host::ProcessState kSleeping{.state = 'S', .start = 1}, kStopped{.state = 'T', .start = 1};

RankView in_step(int rank, bool waits, double still, std::uint64_t sequence = 20) {
  return {.rank = rank, .phase = Phase::Step, .waits = waits, .sequence = sequence, .step = 7, .still = still};
}

TEST(Verdict, WhoWaitsForTheOthersIsNotMissing) {
  const std::vector<RankView> ranks{in_step(0, true, 70), in_step(1, false, 70), in_step(2, true, 70)};
  const Verdict verdict = judge(ranks, 60, kNobody, std::vector(3, kSleeping));
  EXPECT_EQ(verdict.missing, Indices{1});
  EXPECT_FALSE(verdict.all_wait);
}

TEST(Verdict, ARankThatWaitsForItsProducerIsNotMissingUnlessItIsDead) {
  std::vector<RankView> ranks{in_step(0, true, 70), in_step(1, false, 70, 19)};
  ranks[1].phase = Phase::Producing;
  const Verdict verdict = judge(ranks, 60, kNobody, std::vector(2, kSleeping));
  EXPECT_TRUE(verdict.missing.empty());
  EXPECT_EQ(verdict.producing, Indices{1});
  EXPECT_FALSE(verdict.all_wait) << "the producer decides when they go on";
  EXPECT_EQ(place_of(ranks[1]), "at step 7, waiting for samples of its stream");
  EXPECT_EQ(judge(ranks, 60, kNobody, std::vector{kSleeping, kStopped}).missing, Indices{1});
}

TEST(Verdict, NobodyIsMissingBeforeTheLimit) {
  const std::vector<RankView> ranks{in_step(0, true, 59), in_step(1, false, 59)};
  EXPECT_TRUE(judge(ranks, 60, kNobody, std::vector(2, kSleeping)).missing.empty());
}

TEST(Verdict, WhoEnteredFewerPhasesIsLastWhereverItWaits) {
  // Rank 1 stopped while it waited in step 7; rank 0 has gone on and blocks in a collective.
  const std::vector<RankView> ranks{in_step(0, false, 70, 23), in_step(1, false, 80, 20)};
  EXPECT_EQ(judge(ranks, 60, kNobody, std::vector(2, kSleeping)).missing, Indices{1});
  // And who is last may be on another host: this one has nobody to name.
  EXPECT_TRUE(judge(ranks, 60, 19, std::vector(2, kSleeping)).missing.empty());
}

TEST(Verdict, AStoppedProcessIsMissingEvenIfItWaited) {
  const std::vector<RankView> ranks{in_step(0, true, 70), in_step(1, true, 70)};
  EXPECT_EQ(judge(ranks, 60, kNobody, std::vector{kSleeping, kStopped}).missing, Indices{1});
  EXPECT_EQ(judge(ranks, 60, kNobody, std::vector{kSleeping, host::ProcessState{}}).missing, Indices{1});
}

TEST(Verdict, AllMayWait) {
  const std::vector<RankView> ranks{in_step(0, true, 70), in_step(1, true, 70)};
  const Verdict verdict = judge(ranks, 60, kNobody, std::vector(2, kSleeping));
  EXPECT_TRUE(verdict.missing.empty());
  EXPECT_TRUE(verdict.all_wait);
}

TEST(Verdict, RanksOfDifferentCallsWaitForEachOther) {
  std::vector<RankView> ranks{in_step(0, true, 70, 20), in_step(1, true, 70, 23)};
  EXPECT_TRUE(judge(ranks, 60, kNobody, std::vector(2, kSleeping)).all_wait);
  EXPECT_EQ(why_all_wait(ranks),
            "at step 7, in the training step, before its first gradient: a message between them was lost, or they are "
            "in different calls");
  ranks[1].phase = Phase::Evaluating;
  EXPECT_EQ(
      why_all_wait(ranks),
      "in different calls: rank 0 at step 7, in the training step, before its first gradient, rank 1 at step 7, in "
      "an evaluation; expected the same calls, in the same order, on all ranks");
}

TEST(Verdict, AProgramReturnsOnAllRanksOrOnNone) {
  std::vector<RankView> ranks{in_step(0, true, 5, 21), in_step(1, true, 5, 20)};
  EXPECT_EQ(left_alone(ranks, 99), std::nullopt) << "it has returned on no rank of this node";
  ranks[1].phase = Phase::Returned;
  EXPECT_EQ(left_alone(ranks, 0), 1U);
  ranks[0].sequence = 20;
  EXPECT_EQ(left_alone(ranks, 0), 1U) << "the 20th phase of rank 0 is another one";
  ranks[0].still = 0.5;
  EXPECT_EQ(left_alone(ranks, 0), std::nullopt) << "rank 0 may return now, its row half written";
  EXPECT_EQ(furthest(ranks), 0U);
  ranks[0] = in_step(0, true, 5, 19);
  EXPECT_EQ(left_alone(ranks, 0), std::nullopt) << "rank 0 may still come to its end";
  EXPECT_EQ(furthest(ranks), 19U);
  EXPECT_EQ(left_alone(ranks, 21), 1U) << "a rank of another node goes on";
  ranks[0] = ranks[1];
  EXPECT_EQ(left_alone(ranks, 0), std::nullopt);
}

TEST(Verdict, CompilingAndSavingMayTakeTenTimesAsLong) {
  for (const Phase phase : {Phase::Starting, Phase::Saving, Phase::Ending}) {
    std::vector<RankView> ranks{in_step(0, false, 599)};
    ranks[0].phase = phase;
    EXPECT_TRUE(judge(ranks, 60, kNobody, std::vector{kSleeping}).missing.empty());
    ranks[0].still = 601;
    EXPECT_EQ(judge(ranks, 60, kNobody, std::vector{kSleeping}).missing, Indices{0});
  }
}

TEST(Verdict, APlaceIsToldInWords) {
  RankView rank = in_step(3, false, 70);
  EXPECT_EQ(place_of(rank), "at step 7, in the training step, before its first gradient");
  rank.bucket = 2;
  EXPECT_EQ(place_of(rank), "at step 7, in the training step, at bucket 2");
  rank.phase = Phase::Loading;
  EXPECT_EQ(place_of(rank), "at step 7, waiting for its next batch of data");
  EXPECT_EQ(place_of({.rank = 0, .phase = Phase::Starting}), "before its first step, starting");
}

// Other processes find rows in shared memory and construct nothing there: a row is plain numbers, and zeros are a row.
static_assert(std::is_trivially_copyable_v<Heartbeat::Row> && std::is_trivially_destructible_v<Heartbeat::Row>);

TEST(Heartbeat, BeatsStayWhatTheyAreWhenTheRowMoves) {
  Heartbeat heartbeat;
  heartbeat.enter_step(5);
  heartbeat.touch_bucket(3);
  Heartbeat::Row row;
  heartbeat.attach(row);
  EXPECT_EQ(row.step.load(), 5);
  EXPECT_EQ(row.bucket.load(), 3);
  EXPECT_EQ(row.sequence.load(), 1U);
  const std::uint64_t before = row.beats.load();
  heartbeat.wait();
  EXPECT_EQ(row.waits.load(), row.beats.load());
  heartbeat.beat();
  EXPECT_NE(row.waits.load(), row.beats.load()) << "a beat ends the waiting";
  EXPECT_GT(row.beats.load(), before);
  heartbeat.detach();
  heartbeat.beat();
  EXPECT_EQ(row.beats.load(), before + 1) << "the row was given back";
}

}  // namespace
}  // namespace lockstep::train

#include "lockstep/parallel/control/ballot.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using Ranks = std::vector<int>;

parallel::BallotResult of(std::vector<parallel::BlockCopy> copies) { return parallel::elect(copies); }

TEST(Ballot, IntactCopiesAreLeftAlone) {
  EXPECT_TRUE(of({}).damaged.empty());
  EXPECT_TRUE(of({{0, 7, 7}}).damaged.empty());
  EXPECT_TRUE(of({{0, 7, 7}, {1, 7, 7}, {2, 7, 7}}).damaged.empty());
}

TEST(Ballot, MemoryThatDiffersFromItsChecksumIsDamaged) {
  EXPECT_EQ(of({{4, 7, 8}}).damaged, Ranks{4});
  EXPECT_EQ(of({{4, 7, 8}}).source, -1);
  const parallel::BallotResult two = of({{0, 7, 8}, {1, 7, 7}});
  EXPECT_EQ(two.damaged, Ranks{0});
  EXPECT_EQ(two.source, 1);
}

TEST(Ballot, TheMajorityOutvotesACopyThatWasWrittenWrong) {
  const parallel::BallotResult three = of({{0, 7, 7}, {3, 9, 9}, {5, 7, 7}});
  EXPECT_EQ(three.damaged, Ranks{3});
  EXPECT_EQ(three.source, 0);
}

TEST(Ballot, WithoutAMajorityNobodyIsASource) {
  const parallel::BallotResult two = of({{0, 7, 7}, {1, 9, 9}});
  EXPECT_EQ(two.damaged, (Ranks{0, 1}));
  EXPECT_EQ(two.source, -1);
  EXPECT_EQ(of({{0, 1, 1}, {1, 2, 2}, {2, 3, 3}}).damaged.size(), 3U);
  EXPECT_EQ(of({{0, 1, 1}, {1, 1, 1}, {2, 3, 3}, {3, 3, 3}}).source, -1);
}

TEST(Ballot, ADamagedMajorityStillVotesForWhatItWrote) {
  const parallel::BallotResult all = of({{0, 7, 1}, {1, 7, 2}, {2, 7, 7}});
  EXPECT_EQ(all.damaged, (Ranks{0, 1}));
  EXPECT_EQ(all.source, 2);
  EXPECT_EQ(of({{0, 7, 1}, {1, 7, 2}}).source, -1);
}

TEST(Ballot, ADamagedChecksumIsNoDamage) { EXPECT_TRUE(of({{0, 1, 7}, {1, 7, 7}, {2, 7, 7}}).damaged.empty()); }

}  // namespace
}  // namespace lockstep

// How ranks exchange is decided in one place, alike on all ranks, with a reason.
#include "lockstep/parallel/exchange/path_choice.h"

#include <gtest/gtest.h>

#include "lockstep/comm/environment.h"
#include "tests/mpi/harness.h"
#include "tests/mpi/tree_values.h"

namespace lockstep::test {
namespace {

using enum parallel::AllreducePath;

constexpr std::size_t kTooMuch = std::size_t{1} << 50;

TEST(PathChoice, AutoTakesSharedMemoryInANodeWhereThereIsRoom) {
  if (world().size() == 1 || world().node_count() > 1) GTEST_SKIP() << "wants several ranks of one node";
  EXPECT_EQ(parallel::choose_path(world(), {}).path, Shared);
  EXPECT_EQ(parallel::choose_path(world(), {}).domains.count(), 1);
  // Room on some ranks is not enough.
  const parallel::PathChoice none = parallel::choose_path(world(), {.shared_bytes = world().is_root() ? kTooMuch : 0});
  EXPECT_EQ(none.path, Messages);
  EXPECT_EQ(none.domains.count(), world().size());
  EXPECT_NE(none.reason.find("/dev/shm has no room"), std::string::npos) << none.reason;
}

TEST(PathChoice, DomainsDecideBetweenTheWays) {
  if (world().size() < 3) GTEST_SKIP() << "wants several domains, of several ranks";
  const parallel::Domains pairs = domains_of(world(), 2, false);
  const parallel::PathChoice choice = parallel::choose_path(world(), {.domains = pairs});
  EXPECT_EQ(choice.path, Hierarchical);
  EXPECT_EQ(choice.domains.count(), pairs.count());
  EXPECT_EQ(parallel::choose_path(world(), {.path = Messages, .domains = pairs}).domains.count(), world().size());
  EXPECT_EQ(parallel::choose_path(world(), {.domains = domains_of(world(), 1, false)}).path, Messages);
}

TEST(PathChoice, OneRankExchangesNothing) {
  if (world().size() > 1) GTEST_SKIP() << "there are several";
  const parallel::PathChoice choice = parallel::choose_path(world(), {});
  EXPECT_NE(choice.path, Auto);
  EXPECT_EQ(choice.reason, "one rank: nothing is exchanged");
}

TEST(PathChoice, WhatIsAskedForIsTakenOrRefused) {
  EXPECT_EQ(parallel::choose_path(world(), {.path = Mpi}).path, Mpi);
  EXPECT_EQ(parallel::choose_path(world(), {.path = Messages}).path, Messages);
  if (world().size() < 3) return;
  const parallel::Domains pairs = domains_of(world(), 2, false);
  EXPECT_NE(
      error_of([&] { parallel::choose_path(world(), {.path = Shared, .domains = pairs}); }).find("is for one node"),
      std::string::npos);
}

TEST(PathChoice, SizesDecideBetweenRounds) {
  const int size = world().size();
  const parallel::Domains single = parallel::Domains::single_ranks(world().rank(), size);
  EXPECT_TRUE(parallel::takes_one_round(single, 8));
  EXPECT_EQ(parallel::takes_one_round(single, 1 << 20), size <= 2);
  EXPECT_GT(parallel::choose_chunk_bytes(single), 0);
}

TEST(PathChoice, BucketsAreAlikeOnAllRanks) {
  const parallel::Domains single = parallel::Domains::single_ranks(world().rank(), world().size());
  const std::int64_t bytes = parallel::choose_bucket_bytes(world(), single);
  EXPECT_EQ(world().allreduce(bytes, comm::ReduceOp::Min), world().allreduce(bytes, comm::ReduceOp::Max));
  EXPECT_GE(bytes, 1 << 20);
  EXPECT_LE(bytes, 32 << 20);
}

TEST(PathChoice, AThreadMayDriveWhereMpiAllowsIt) {
  EXPECT_EQ(parallel::may_drive_by_thread(), comm::Environment::current_thread_level() == comm::ThreadLevel::Multiple);
}

}  // namespace
}  // namespace lockstep::test

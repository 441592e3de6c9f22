// Sums for collective nodes of a graph: those of the reduction tree, the same bits on every rank, in one round and in
// two.
#include "lockstep/parallel/exchange/tree_collective.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "lockstep/core/random.h"
#include "lockstep/parallel/exchange/path_choice.h"
#include "tests/mpi/harness.h"

namespace lockstep::test {
namespace {

std::vector<double> numbers_of(int rank, std::size_t n) {
  std::vector<double> numbers(n);
  RandomStream random(3, static_cast<std::uint64_t>(rank));
  std::ranges::generate(numbers, [&] { return random.normal(); });
  return numbers;
}

// Of all ranks' numbers, by the tree over ranks.
std::vector<double> expected_sum(std::size_t n) {
  const int size = world().size();
  std::vector<std::vector<double>> all;
  for (int r = 0; r < size; ++r) all.push_back(numbers_of(r, n));
  std::vector<const double*> operands;
  for (const auto& values : all) operands.push_back(values.data());
  std::vector<double> want(n);
  const std::array<double*, 1> out{want.data()};
  parallel::tree_sum<double>(operands, parallel::WorldLayout(0, size, 0).merges(), static_cast<std::int64_t>(n), out,
                             {});
  return want;
}

TEST(TreeCollective, SumsInTheTreesOrder) {
  parallel::TreeCollective collective(world());
  const parallel::Domains ranks = parallel::Domains::single_ranks(world().rank(), world().size());
  EXPECT_TRUE(parallel::takes_one_round(ranks, 7 * 8));
  EXPECT_TRUE(world().size() <= 2 || !parallel::takes_one_round(ranks, 20'000 * 8));
  for (const std::size_t n : {1, 7, 0, 1000, 20'000, 3}) {
    std::vector<double> sum = numbers_of(world().rank(), n);
    collective.allreduce_sum(sum);
    EXPECT_EQ(sum, expected_sum(n)) << n;
  }
}

// The other ranks may need what `work` drives before they come: here rank 0 waits for a message of it.
TEST(TreeCollective, DrivesWorkWhileItWaits) {
  if (world().size() == 1) GTEST_SKIP() << "one rank waits for nobody";
  parallel::TreeCollective collective(world());
  bool sent = false;
  int word = 0;
  collective.while_waiting([&] {
    if (world().rank() == 1 && !std::exchange(sent, true)) world().send(std::span(&word, 1), 0, 9);
  });
  if (world().is_root()) world().recv(std::span(&word, 1), 1, 9);
  std::vector<double> sum = numbers_of(world().rank(), 10);
  collective.allreduce_sum(sum);
  EXPECT_EQ(sum, expected_sum(10));
}

}  // namespace
}  // namespace lockstep::test

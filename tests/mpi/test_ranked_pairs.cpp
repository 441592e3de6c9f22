// Pairs of all ranks in one order: the same result at any number of ranks, in pieces of any size.
#include "lockstep/train/step/ranked_pairs.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <optional>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "tests/memory_limit.h"
#include "tests/mpi/harness.h"

namespace lockstep::test {
namespace {

// Pair i of `size`; many scores are equal, some are not numbers.
ScoredPair pair_at(std::int64_t i) {
  RandomStream random(3, static_cast<std::uint64_t>(i));
  const double label = static_cast<double>(random.below(2));
  if (random.below(50) == 0) return {std::numeric_limits<double>::quiet_NaN(), label};
  return {std::floor(random.uniform(0, 20)), label};
}

// A number that depends on every pair and on their order.
double fingerprint(const NextPair& next) {
  double value = 0;
  ScoredPair pair;
  for (double i = 1; next(pair); ++i)
    value = 0.75 * value + i * (std::isnan(pair.score) ? 100 : pair.score) + pair.label;
  return value;
}

double fold_pairs(const comm::Communicator& comm, std::vector<ScoredPair> mine,
                  const std::function<double(const NextPair& next)>& fold,
                  std::int64_t buffered = std::int64_t{1} << 22) {
  Heartbeat heartbeat;
  return train::fold_in_order(comm, heartbeat, std::move(mine), fold, buffered);
}

TEST(RankedPairs, HaveOneOrderAtAnyNumberOfRanks) {
  for (const std::int64_t size : {0, 1, 5, 400}) {
    std::vector<ScoredPair> mine, all;
    for (std::int64_t i = 0; i < size; ++i) {
      all.push_back(pair_at(i));
      if (i * i % world().size() == world().rank()) mine.push_back(pair_at(i));  // uneven parts, some are empty
    }
    const comm::Communicator alone = world().split(world().rank(), 0);
    const double expected = fold_pairs(alone, all, fingerprint);
    for (const std::int64_t buffered : {1, 7, 1 << 20})
      EXPECT_EQ(fold_pairs(world(), mine, fingerprint, buffered), expected) << size << " " << buffered;
  }
}

TEST(RankedPairs, ComeInTheOrderOfScoresAndLabels) {
  std::vector<ScoredPair> mine;
  for (std::int64_t i = world().rank(); i < 300; i += world().size()) mine.push_back(pair_at(i));
  std::int64_t pairs = 0;
  const double wrong = fold_pairs(world(), mine, [&](const NextPair& next) {
    ScoredPair before{-1, 0}, pair;
    double bad = 0;
    for (; next(pair); ++pairs, before = pair) {
      const bool ends = std::isnan(before.score);
      bad += ends ? !std::isnan(pair.score)
                  : pair.score < before.score || (pair.score == before.score && pair.label < before.label);
    }
    return bad + (pairs == 300 ? 0 : 1000);
  });
  EXPECT_EQ(wrong, 0);
}

TEST(RankedPairs, AFoldMayLeavePairsOrThrow) {
  std::vector<ScoredPair> mine(500, {static_cast<double>(world().rank()), 1});
  const double first = fold_pairs(
      world(), mine,
      [](const NextPair& next) {
        ScoredPair pair;
        return next(pair) ? pair.score : -1;
      },
      8);
  EXPECT_EQ(first, 0);
  const std::string error = error_of([&] {
    fold_pairs(
        world(), mine, [](const NextPair& /*next*/) -> double { fail("fold", "it cannot"); }, 8);
  });
  EXPECT_NE(error.find("[fold] it cannot"), std::string::npos) << error;
  EXPECT_EQ(fold_pairs(world(), {}, fingerprint), 0) << "the next one works";
}

// So many pairs take a while: a watchdog sees that each rank sorts and that rank 0 merges.
TEST(RankedPairs, ARankThatSortsOrMergesMovesAndDoesNotWait) {
  Heartbeat::Row row;
  Heartbeat heartbeat;
  heartbeat.attach(row);
  std::vector<ScoredPair> mine;
  for (std::int64_t i = 0; i < 100'000; ++i) mine.push_back(pair_at(i));
  std::int64_t waits = 0;
  std::uint64_t beats = 0;
  const std::uint64_t before = row.beats.load();
  const auto fold = [&](const NextPair& next) {
    const std::uint64_t first = row.beats.load();
    ScoredPair pair;
    while (next(pair)) waits += row.waits.load() == row.beats.load() ? 1 : 0;
    beats = row.beats.load() - first;
    return 1.0;
  };
  EXPECT_EQ(train::fold_in_order(world(), heartbeat, mine, fold), 1);
  EXPECT_GT(row.beats.load(), before + 2) << "more than before the sort and at the end";
  if (world().is_root()) {
    EXPECT_GT(beats, 0U);
    EXPECT_EQ(waits, 0);
  }
  EXPECT_NE(row.waits.load(), row.beats.load()) << "it waits for nobody any more";
  heartbeat.detach();
}

// Lets this process map at most `bytes` more while it lives.
class LittleMemory {
 public:
  explicit LittleMemory(std::size_t bytes) {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limit{};
    worked_ = getrlimit(RLIMIT_AS, &before_) == 0;
    limit = before_;
    limit.rlim_cur = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + bytes;
    worked_ = worked_ && setrlimit(RLIMIT_AS, &limit) == 0;
  }
  ~LittleMemory() { setrlimit(RLIMIT_AS, &before_); }
  LittleMemory(const LittleMemory&) = delete;
  LittleMemory& operator=(const LittleMemory&) = delete;
  bool worked() const { return worked_; }

 private:
  rlimit before_{};
  bool worked_ = false;
};

// Without memory for their pairs it must not leave the other ranks in the middle of sending.
TEST(RankedPairs, RankZeroWithoutMemoryEndsTheMergeOnAllRanks) {
  if (world().size() == 1) GTEST_SKIP() << "no pairs of other ranks";
  LOCKSTEP_SKIP_WITHOUT_LIMITS();
  std::vector<ScoredPair> mine(world().is_root() ? 0 : std::size_t{3} << 20, {1, 1});  // 48 MiB
  std::string error;
  {
    std::optional<LittleMemory> little;
    if (world().is_root()) little.emplace(std::size_t{8} << 20);
    EXPECT_TRUE(!little || little->worked());
    error = error_of([&] { fold_pairs(world(), std::move(mine), fingerprint, std::int64_t{1} << 40); });
  }
  EXPECT_NE(error.find("memory"), std::string::npos) << error;
  EXPECT_NE(error.find("rank 0"), std::string::npos) << error;
  EXPECT_EQ(fold_pairs(world(), {}, fingerprint), 0) << "the next one works";
}

}  // namespace
}  // namespace lockstep::test

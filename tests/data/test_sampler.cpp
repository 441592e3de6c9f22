#include <algorithm>
#include <numeric>
#include <set>

#include "lockstep/data/sampler.h"
#include "tests/data/support.h"

namespace lockstep::data {
namespace {

// The sampler of rank `rank` of `ranks`, which hold `shards` shards in contiguous parts.
DistributedSampler sampler_of(SamplerOptions options, std::int64_t shards, std::int64_t ranks, std::int64_t rank) {
  options.shards = shards;
  options.my_shards = part_of(shards, ranks, rank);
  return DistributedSampler(options);
}

// The samples of a step in the order of ranks; each rank's part must be where it says it is.
std::vector<std::int64_t> gather(std::vector<DistributedSampler>& ranks) {
  std::vector<std::int64_t> all;
  std::int64_t global = -1;
  for (DistributedSampler& sampler : ranks) {
    const StepSamples step = sampler.next();
    if (global < 0) global = step.global_size;
    EXPECT_EQ(step.global_size, global);
    EXPECT_EQ(step.local.size(), static_cast<std::int64_t>(step.samples.size()));
    if (!step.samples.empty()) {
      EXPECT_EQ(step.local.begin, static_cast<std::int64_t>(all.size()));
    }
    all.insert(all.end(), step.samples.begin(), step.samples.end());
  }
  EXPECT_EQ(static_cast<std::int64_t>(all.size()), global);
  return all;
}

struct Layout {
  std::int64_t ranks, shards;  // shards 0: one per rank
};
class SamplerLayouts : public testing::TestWithParam<Layout> {};

TEST_P(SamplerLayouts, StepsHoldTheSameSamplesAsOnOneRankAndEpochsHoldEachOnce) {
  const auto [ranks, shards] = GetParam();
  const std::int64_t all_shards = shards > 0 ? shards : ranks;
  for (const std::int64_t size : {3, 100, 101, 128}) {
    const SamplerOptions options{.size = size, .global_batch = 13, .seed = 5};
    DistributedSampler alone(options);
    std::vector<DistributedSampler> all;
    for (std::int64_t rank = 0; rank < ranks; ++rank) all.push_back(sampler_of(options, all_shards, ranks, rank));
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      std::vector<std::int64_t> seen;
      for (std::int64_t t = 0; t < alone.steps_per_epoch(); ++t) {
        const StepSamples expected = alone.next();
        EXPECT_EQ(expected.epoch, epoch);
        EXPECT_EQ(expected.offset, t * 13);
        EXPECT_EQ(gather(all), expected.samples);
        seen.insert(seen.end(), expected.samples.begin(), expected.samples.end());
      }
      std::ranges::sort(seen);
      std::vector<std::int64_t> each_once(static_cast<std::size_t>(size));
      std::iota(each_once.begin(), each_once.end(), 0);
      EXPECT_EQ(seen, each_once);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, SamplerLayouts,
                         testing::Values(Layout{1, 0}, Layout{2, 0}, Layout{3, 0}, Layout{4, 0}, Layout{1, 4},
                                         Layout{2, 4}, Layout{3, 4}, Layout{4, 4}, Layout{1, 8}, Layout{2, 8},
                                         Layout{3, 8}, Layout{4, 8}, Layout{6, 4}),
                         [](const auto& test) {
                           return formatted("ranks{}shards{}", test.param.ranks, test.param.shards);
                         });

TEST(Sampler, CutsAStepByShards) {
  auto sampler = sampler_of({.size = 1000, .global_batch = 128}, 3, 3, 1);
  EXPECT_EQ(sampler.next().local, (Range{43, 86}));
  sampler = sampler_of({.size = 1000, .global_batch = 10}, 4, 3, 0);  // shards 3 3 2 2, the first two are here
  EXPECT_EQ(sampler.next().local, (Range{0, 6}));
}

TEST(Sampler, PermutationsDifferByEpochAndSeedAndRepeat) {
  const auto epoch_of = [](std::uint64_t seed, std::int64_t epoch) {
    DistributedSampler sampler({.size = 50, .global_batch = 50, .seed = seed});
    sampler.seek({.epoch = epoch, .offset = 0});
    return sampler.next().samples;
  };
  EXPECT_EQ(epoch_of(1, 0), epoch_of(1, 0));
  EXPECT_NE(epoch_of(1, 0), epoch_of(1, 1));
  EXPECT_NE(epoch_of(1, 0), epoch_of(2, 0));
}

TEST(Sampler, FirstPositionIsUniform) {
  std::array<int, 5> counts{};
  DistributedSampler sampler({.size = 5, .global_batch = 5, .seed = 3});
  for (int epoch = 0; epoch < 20000; ++epoch) ++counts[static_cast<std::size_t>(sampler.next().samples[0])];
  for (int n : counts) EXPECT_NEAR(n, 4000, 300);  // five standard deviations
}

TEST(Sampler, DropLeavesOutTheTailAndKeepDoesNot) {
  DistributedSampler drop({.size = 10, .global_batch = 4, .remainder = Remainder::Drop});
  DistributedSampler keep({.size = 10, .global_batch = 4});
  EXPECT_EQ(drop.steps_per_epoch(), 2);
  EXPECT_EQ(keep.steps_per_epoch(), 3);
  std::vector<std::int64_t> drop_sizes, keep_sizes;
  for (int i = 0; i < 4; ++i) {
    drop_sizes.push_back(drop.next().global_size);
    keep_sizes.push_back(keep.next().global_size);
  }
  EXPECT_EQ(drop_sizes, (std::vector<std::int64_t>{4, 4, 4, 4}));
  EXPECT_EQ(keep_sizes, (std::vector<std::int64_t>{4, 4, 2, 4}));
  EXPECT_EQ(drop.position(), (SamplerPosition{2, 0}));
  EXPECT_EQ(keep.position(), (SamplerPosition{1, 4}));
}

TEST(Sampler, SeekingEqualsGoingOn) {
  for (const Remainder remainder : {Remainder::Keep, Remainder::Drop}) {
    DistributedSampler straight({.size = 23, .global_batch = 5, .seed = 9, .remainder = remainder});
    for (int t = 0; t < 12; ++t) {
      DistributedSampler resumed({.size = 23, .global_batch = 5, .seed = 9, .remainder = remainder});
      resumed.seek(straight.position());
      DistributedSampler copy = straight;
      for (int k = 0; k < 7; ++k) {
        const StepSamples a = copy.next(), b = resumed.next();
        EXPECT_EQ(a.samples, b.samples);
        EXPECT_EQ(a.epoch, b.epoch);
        EXPECT_EQ(a.offset, b.offset);
      }
      straight.next();
    }
  }
}

TEST(Sampler, AnotherBatchSizeGoesOnFromTheSameSample) {
  DistributedSampler first({.size = 20, .global_batch = 6, .seed = 4});
  std::vector<std::int64_t> seen = first.next().samples;
  DistributedSampler second({.size = 20, .global_batch = 5, .seed = 4});
  second.seek(first.position());
  while (second.position().epoch == 0) {
    const StepSamples step = second.next();
    seen.insert(seen.end(), step.samples.begin(), step.samples.end());
  }
  EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 20u);
  EXPECT_EQ(seen.size(), 20u);
}

TEST(Sampler, AnOffsetAtTheEndIsTheNextEpoch) {
  DistributedSampler sampler({.size = 10, .global_batch = 4});
  sampler.seek({.epoch = 2, .offset = 10});
  EXPECT_EQ(sampler.position(), (SamplerPosition{3, 0}));
  DistributedSampler drop({.size = 10, .global_batch = 4, .remainder = Remainder::Drop});
  drop.seek({.epoch = 2, .offset = 8});
  EXPECT_EQ(drop.position(), (SamplerPosition{3, 0}));
}

TEST(Sampler, EvaluationIsInOrderDisjointAndComplete) {
  const SamplerOptions options{.size = 11, .global_batch = 4, .shuffle = false};
  std::vector<DistributedSampler> ranks;
  for (std::int64_t rank = 0; rank < 3; ++rank) ranks.push_back(sampler_of(options, 3, 3, rank));
  std::vector<std::int64_t> seen;
  for (int t = 0; t < 3; ++t) {
    const auto step = gather(ranks);
    seen.insert(seen.end(), step.begin(), step.end());
  }
  std::vector<std::int64_t> expected(11);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(seen, expected);
}

TEST(Sampler, MoreShardsThanSamplesLeavesSomeWithNone) {
  auto last = sampler_of({.size = 10, .global_batch = 2}, 4, 4, 3);
  const StepSamples step = last.next();
  EXPECT_TRUE(step.samples.empty());
  EXPECT_EQ(step.global_size, 2);
  auto none = sampler_of({.size = 10, .global_batch = 2}, 4, 6, 5);  // a rank without a shard
  EXPECT_TRUE(none.next().samples.empty());
}

TEST(Sampler, BadOptionsNameTheNumbers) {
  expect_error([] { DistributedSampler({.size = 10, .global_batch = 16, .remainder = Remainder::Drop}); },
               {"16", "10"});
  expect_error([] { DistributedSampler({.size = 0}); }, {"0 samples"});
  expect_error([] { DistributedSampler({.size = 4, .global_batch = 0}); }, {"global batch 0"});
  expect_error([] { DistributedSampler({.size = 4, .shards = 2, .my_shards = {1, 3}}); }, {"[1, 3)", "[0, 2)"});
  DistributedSampler sampler({.size = 10});
  expect_error([&] { sampler.seek({.epoch = 0, .offset = 11}); }, {"11", "10"});
  expect_error([&] { sampler.seek({.epoch = -1, .offset = 0}); }, {"-1"});
}

}  // namespace
}  // namespace lockstep::data

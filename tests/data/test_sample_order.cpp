#include "lockstep/data/sample_order.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>

#include "lockstep/data/array_datasets.h"
#include "lockstep/data/loader.h"
#include "tests/data/support.h"

namespace lockstep::data {
namespace {

std::map<std::int64_t, int> counts_of(const std::vector<std::int64_t>& indices) {
  std::map<std::int64_t, int> counts;
  for (const std::int64_t i : indices) ++counts[i];
  return counts;
}

TEST(WeightedOrder, TakesEachSampleFloorOrCeilOfItsExpectedNumber) {
  const std::vector<double> weights{1, 2, 0, 4.5, 0.25};
  const WeightedOrder order(weights, 100);
  for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
    const auto indices = order.indices(3, epoch);
    ASSERT_EQ(indices.size(), 100u);
    auto counts = counts_of(indices);
    EXPECT_EQ(counts[2], 0);
    for (std::int64_t i = 0; i < 5; ++i) {
      const double expected = 100 * weights[static_cast<std::size_t>(i)] / 7.75;
      EXPECT_LT(std::abs(counts[i] - expected), 1) << i;
    }
  }
}

TEST(WeightedOrder, DependsOnSeedAndEpochAlone) {
  const WeightedOrder order(std::vector<double>(100, 0.1), 30);
  EXPECT_EQ(order.indices(1, 4), order.indices(1, 4));
  EXPECT_NE(order.indices(1, 4), order.indices(1, 5));
  EXPECT_NE(order.indices(1, 4), order.indices(2, 4));
  // With equal weights a sample is there at most once, and over many epochs each about equally often.
  std::map<std::int64_t, int> total;
  for (std::int64_t epoch = 0; epoch < 200; ++epoch) {
    auto counts = counts_of(order.indices(1, epoch));
    EXPECT_EQ(counts.size(), 30u);
    for (const auto& [i, count] : counts) total[i] += count;
  }
  EXPECT_EQ(total.size(), 100u);
  for (const auto& [i, count] : total) EXPECT_NEAR(count, 60, 40) << i;  // six standard deviations
}

TEST(WeightedOrder, AWholeEpochOfEqualWeightsHasEachSampleOnce) {
  const WeightedOrder order(std::vector<double>(257, 3.7));
  auto indices = order.indices(9, 2);
  EXPECT_FALSE(std::ranges::is_sorted(indices));
  std::ranges::sort(indices);
  for (std::size_t i = 0; i < indices.size(); ++i) EXPECT_EQ(indices[i], static_cast<std::int64_t>(i));
}

TEST(WeightedOrder, RefusesWeightsThatAreNone) {
  expect_error([] { WeightedOrder({1, -1}); }, {"sample 1", "weight -1"});
  expect_error([] { WeightedOrder({1, std::numeric_limits<double>::quiet_NaN()}); }, {"sample 1", "nan"});
  expect_error([] { WeightedOrder({0, 0}); }, {"sum to 0"});
  expect_error([] { WeightedOrder({}); }, {"0 samples"});
  expect_error([] { WeightedOrder({1}, -2); }, {"length -2"});
}

TEST(Weights, OfMixturesAndBalancedClasses) {
  const auto mixed = mixture_weights({4, 2}, {1, 3});
  EXPECT_EQ(mixed, (std::vector<double>{0.25, 0.25, 0.25, 0.25, 1.5, 1.5}));
  EXPECT_EQ(mixture_weights({2, 0}, {1, 0}).size(), 2u);
  expect_error([] { mixture_weights({2, 0}, {1, 1}); }, {"data set 1", "0 samples"});
  expect_error([] { mixture_weights({2}, {1, 1}); }, {"2 weights for 1"});
  EXPECT_EQ(balanced_weights({5, 5, 5, 2}), (std::vector<double>{1.0 / 3, 1.0 / 3, 1.0 / 3, 1}));
  std::vector<NamedTensor> tensors;
  tensors.push_back({"x", Tensor({4, 2}, DType::F32)});
  tensors.push_back({"label", Tensor::from<std::int32_t>({4}, std::vector<std::int32_t>{1, 0, 1, 1})});
  const TensorDataset set(std::move(tensors));
  EXPECT_EQ(labels_of(set), (std::vector<std::int32_t>{1, 0, 1, 1}));
  expect_error([&] { labels_of(set, "x"); }, {"'x' is f32 (2)"});
}

// The samples of all ranks, step by step.
std::vector<std::int64_t> samples_of(const std::shared_ptr<const SampleOrder>& order, std::int64_t ranks) {
  std::vector<std::vector<std::int64_t>> steps;
  for (std::int64_t r = 0; r < ranks; ++r) {
    DistributedSampler sampler({.size = order->length(),
                                .global_batch = 5,
                                .shards = 12,
                                .my_shards = part_of(12, ranks, r),
                                .seed = 4,
                                .order = order});
    for (std::size_t step = 0; step < 10; ++step) {
      if (steps.size() <= step) steps.emplace_back();
      const auto mine = sampler.next().samples;
      steps[step].insert(steps[step].end(), mine.begin(), mine.end());
    }
  }
  std::vector<std::int64_t> all;
  for (const auto& step : steps) all.insert(all.end(), step.begin(), step.end());
  return all;
}

TEST(SampleOrder, IsTheSameAtAnyNumberOfRanks) {
  const auto order = std::make_shared<WeightedOrder>(std::vector<double>{1, 2, 3, 4, 5, 6, 7}, 18);
  const auto one = samples_of(order, 1);
  for (const std::int64_t ranks : {2, 3, 4, 6}) EXPECT_EQ(samples_of(order, ranks), one);
}

TEST(SampleOrder, TheLoaderReadsTheOrdersSamples) {
  std::vector<NamedTensor> tensors;
  tensors.push_back({"x", Tensor::from<double>({3}, std::vector<double>{10, 20, 30})});
  const TensorDataset set(std::move(tensors));
  const auto order = std::make_shared<WeightedOrder>(std::vector<double>{0, 1, 0}, 8);
  Loader loader(set, DistributedSampler({.size = 8, .global_batch = 4, .order = order}));
  const Batch batch = loader.next();
  EXPECT_EQ(batch.samples(), 4);
  for (const double x : batch.at("x").data<double>()) EXPECT_EQ(x, 20);
  loader.next();
  EXPECT_EQ(loader.position(), (SamplerPosition{1, 0}));
  expect_error([&] { DistributedSampler({.size = 3, .order = order}); }, {"size 3", "length of the order, 8"});
  expect_error([&] { DistributedSampler({.size = 8, .shuffle = false, .order = order}); }, {"shuffle"});
  const auto other = std::make_shared<WeightedOrder>(std::vector<double>{1, 1}, 8);
  expect_error([&] { Loader(set, DistributedSampler({.size = 8, .order = other})); }, {"2 samples", "has 3"});
}

}  // namespace
}  // namespace lockstep::data

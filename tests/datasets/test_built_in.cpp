#include <cmath>
#include <set>
#include <thread>

#include "data/datasets/catalogue.h"
#include "data/datasets/digits.h"
#include "data/datasets/synthetic.h"
#include "lockstep/core/random.h"
#include "tests/data/support.h"

namespace lockstep::datasets {
namespace {

using namespace data;

std::uint64_t hash_of(const Dataset& dataset, std::int64_t samples) {
  std::uint64_t hash = 0;
  for (std::int64_t i = 0; i < samples; ++i) {
    for (const Bytes& field : sample_of(dataset, i)) {
      hash = mix(hash, hash_name({reinterpret_cast<const char*>(field.data()), field.size()}));
    }
  }
  return hash;
}

// If this fails, trained accuracies and every recorded loss on the digits change: that must be meant, never an
// accident.
TEST(Digits, BytesNeverChange) {
  EXPECT_EQ(hash_of(*make_digits({.seed = 0, .split = Split::Train, .size = 200}), 200), 17323698671662137353u);
  EXPECT_EQ(hash_of(*make_digits({.seed = 0, .split = Split::Eval, .size = 200}), 200), 9189538876538626102u);
}

TEST(Digits, ASampleDependsOnSeedSplitAndIndexAlone) {
  const auto small = make_digits({.seed = 3, .size = 10}), large = make_digits({.seed = 3, .size = 40});
  for (std::int64_t i = 0; i < 10; ++i) EXPECT_EQ(sample_of(*small, i), sample_of(*large, i));
  EXPECT_NE(hash_of(*small, 10), hash_of(*make_digits({.seed = 4, .size = 10}), 10));
  EXPECT_NE(hash_of(*small, 10), hash_of(*make_digits({.seed = 3, .split = Split::Eval, .size = 10}), 10));
}

// Also where a block of samples is not whole, in any order, and by several threads.
TEST(Digits, AreTheSameWhenTheyAreDrawnAtTheirFirstReading) {
  const DigitsOptions options{.seed = 3, .split = Split::Eval, .size = 41};
  const auto drawn = make_digits(options);
  const DigitsDataset later(options);
  EXPECT_EQ(later.describe(), drawn->describe());
  EXPECT_EQ(later.fields(), drawn->fields());
  EXPECT_EQ(later.classes(), drawn->classes());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t i = later.size(); i-- > 0;) {
        const std::int64_t index = t % 2 == 0 ? i : later.size() - 1 - i;
        EXPECT_EQ(sample_of(later, index), sample_of(*drawn, index)) << index;
        EXPECT_EQ(later.label(index), drawn->label(index)) << index;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  expect_error([&] { sample_of(later, 41); }, {"sample 41", "expected 0 to 40"});
  EXPECT_THROW(DigitsDataset({.size = 0}), Error);
}

TEST(Digits, ClassesAreBalancedAndImagesHaveTheStatedStatistics) {
  const RunData pair = open_data(catalogue(), {.name = "digits"});
  EXPECT_EQ(pair.train->size(), 12000);
  EXPECT_EQ(pair.eval->size(), 2000);
  EXPECT_EQ(pair.classes(), 10);
  std::array<int, 10> counts{};
  double sum = 0, square = 0;
  for (std::int64_t i = 0; i < pair.train->size(); ++i) {
    const auto sample = sample_of(*pair.train, i);
    ++counts[static_cast<std::size_t>(value_of<std::int32_t>(sample[1]))];
    for (std::uint8_t v : sample[0]) {
      sum += v / 255.0;
      square += v / 255.0 * (v / 255.0);
    }
  }
  for (int n : counts) EXPECT_NEAR(n, 1200, 165);  // five standard deviations
  const double pixels = 12000.0 * 784, mean = sum / pixels;
  EXPECT_NEAR(mean, pair.images.pixels.mean[0], 1e-3);
  EXPECT_NEAR(std::sqrt(square / pixels - mean * mean), pair.images.pixels.stddev[0], 1e-3);
}

TEST(Synthetic, SamplesRepeatDifferAndAreInRange) {
  const SyntheticDataset set({.shape = {3, 8, 8}, .classes = 7, .size = 100, .seed = 1});
  const SyntheticDataset same({.shape = {3, 8, 8}, .classes = 7, .size = 100, .seed = 1});
  std::set<std::string> images;
  std::set<std::int32_t> labels;
  for (std::int64_t i = 0; i < 100; ++i) {
    const auto sample = sample_of(set, i);
    EXPECT_EQ(sample, sample_of(same, i));
    images.emplace(sample[0].begin(), sample[0].end());
    labels.insert(value_of<std::int32_t>(sample[1]));
  }
  EXPECT_GT(images.size(), 90u);
  EXPECT_EQ(labels, (std::set<std::int32_t>{0, 1, 2, 3, 4, 5, 6}));
  expect_error([&] { sample_of(set, 100); }, {"sample 100", "expected 0 to 99"});
}

TEST(Synthetic, FloatsHaveMeanZeroAndVarianceOne) {
  const SyntheticDataset set({.shape = {1, 128, 128}, .classes = 2, .size = 1, .dtype = DType::F32});
  const Bytes bytes = sample_of(set, 0)[0];
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  double sum = 0, square = 0;
  for (double v : values) {
    sum += v;
    square += v * v;
  }
  const auto n = static_cast<double>(values.size());
  EXPECT_NEAR(sum / n, 0, 0.04);
  EXPECT_NEAR(square / n, 1, 0.04);
}

TEST(OpenDatasets, LimitsTakeTheFirstSamples) {
  const RunData all = open_data(catalogue(), {.name = "digits", .seed = 2});
  const RunData some = open_data(catalogue(), {.name = "digits", .limit_train = 30, .limit_eval = 20, .seed = 2});
  EXPECT_EQ(some.train->size(), 30);
  EXPECT_EQ(some.eval->size(), 20);
  EXPECT_EQ(sample_of(*some.train, 29), sample_of(*all.train, 29));
}

TEST(OpenDatasets, SyntheticTakesItsShape) {
  const std::vector<DatasetEntry> own{synthetic_entry({.shape = {3, 16, 16}, .classes = 5, .size = 64})};
  const RunData pair = open_data(own, {.name = "synthetic"});
  EXPECT_EQ(pair.image_shape(), (Shape{3, 16, 16}));
  EXPECT_EQ(pair.classes(), 5);
  EXPECT_EQ(pair.images.pixels.mean.size(), 3u);
  EXPECT_NE(sample_of(*pair.train, 0), sample_of(*pair.eval, 0));
}

TEST(OpenDatasets, SyntheticEvaluatesFewSamplesUnlessAsked) {
  const std::vector<DatasetEntry> own{synthetic_entry({.shape = {3, 4, 4}})};
  const auto evaluated = [&](std::int64_t limit) {
    return open_data(own, {.name = "synthetic", .limit_eval = limit}).eval->size();
  };
  EXPECT_EQ(evaluated(0), 128);
  EXPECT_EQ(evaluated(20), 20);
  EXPECT_EQ(evaluated(5000), 5000);
  expect_error([&] { evaluated(20000); }, {"limit-eval", "20000", "10000"});
}

TEST(OpenDatasets, BadOptionsAreNamed) {
  const auto open = [](const DatasetOptions& options) { open_data(catalogue(), options); };
  expect_error([&] { open({.name = "imagenet"}); }, {"[options] --dataset is 'imagenet'", "digits", "cifar100"});
  expect_error([&] { open({.name = "mnist"}); }, {"[options] --data-dir is missing", "mnist"});
  expect_error([&] { open({.name = "digits", .limit_train = 99999}); }, {"limit-train", "99999", "12000"});
  expect_error([&] { open({.name = "digits", .limit_eval = -1}); }, {"limit-eval", "-1"});
  expect_error([] { open_data({}, {.name = "digits"}); }, {"--dataset is 'digits'"});
}

TEST(OpenDatasets, NamesAreDistinctAndDescribed) {
  std::set<std::string> names;
  for (const DatasetEntry& entry : catalogue()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_FALSE(entry.description.empty()) << entry.name;
    EXPECT_EQ(entry.pixels.mean.size(), entry.pixels.stddev.size()) << entry.name;
  }
}

}  // namespace
}  // namespace lockstep::datasets

#include <cmath>
#include <set>

#include "lockstep/core/random.h"
#include "lockstep/data/array_datasets.h"
#include "lockstep/data/digits.h"
#include "lockstep/data/open.h"
#include "lockstep/data/synthetic.h"
#include "tests/data/support.h"

namespace lockstep::data {
namespace {

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

TEST(Digits, ClassesAreBalancedAndImagesHaveTheStatedStatistics) {
  const DatasetPair pair = open_datasets({.name = "digits"});
  EXPECT_EQ(pair.train->size(), 12000);
  EXPECT_EQ(pair.eval->size(), 2000);
  EXPECT_EQ(pair.classes, 10);
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
  EXPECT_NEAR(mean, pair.mean[0], 1e-3);
  EXPECT_NEAR(std::sqrt(square / pixels - mean * mean), pair.stddev[0], 1e-3);
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
  expect_error([&] { sample_of(set, 100); }, {"sample 100", "there are 100"});
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

TEST(TensorDataset, ReadsSamplesOfAnyDtypeAndShape) {
  std::vector<NamedTensor> tensors;
  tensors.push_back({"x", Tensor::from<double>({3, 2}, std::vector<double>{1, 2, 3, 4, 5, 6})});
  tensors.push_back({"id", Tensor::from<std::int64_t>({3}, std::vector<std::int64_t>{10, 20, 30})});
  const TensorDataset set(std::move(tensors));
  EXPECT_EQ(set.size(), 3);
  EXPECT_EQ(set.fields(), (std::vector<Field>{{"x", {2}, DType::F64}, {"id", Shape{}, DType::I64}}));
  const auto sample = sample_of(set, 2);
  double x[2];
  std::memcpy(x, sample[0].data(), sizeof x);
  EXPECT_EQ(x[0], 5);
  EXPECT_EQ(x[1], 6);
  EXPECT_EQ(value_of<std::int64_t>(sample[1]), 30);
}

TEST(TensorDataset, DisagreementsAreNamed) {
  const auto make = [](const std::vector<std::pair<std::string, Shape>>& parts, std::int64_t classes = 0) {
    std::vector<NamedTensor> tensors;
    for (const auto& [name, shape] : parts) tensors.push_back({name, Tensor(shape, DType::F32)});
    return TensorDataset(std::move(tensors), classes);
  };
  expect_error([&] { make({{"x", {3, 2}}, {"y", {4}}}); }, {"'y' has 4", "'x' has 3"});
  expect_error([&] { make({{"x", {3}}, {"x", {3}}}); }, {"two fields", "'x'"});
  expect_error([&] { make({{"x", Shape{}}}); }, {"'x' is a scalar"});
  expect_error([&] { make({}); }, {"no fields"});
  std::vector<NamedTensor> labels;
  labels.push_back({"label", Tensor::from<std::int32_t>({3}, std::vector<std::int32_t>{0, 5, 1})});
  expect_error([&] { TensorDataset(std::move(labels), 5); }, {"element 1 is 5", "0 to 4"});
}

FunctionDatasetOptions squares(std::int64_t size) {
  return {.size = size, .fields = {{"y", Shape{}, DType::F64}}, .description = "squares", .read = [](auto i, auto out) {
            const auto value = static_cast<double>(i * i);
            std::memcpy(out[0], &value, sizeof value);
          }};
}

TEST(FunctionDataset, CallsBack) {
  const FunctionDataset set(squares(10));
  EXPECT_EQ(value_of<double>(sample_of(set, 7)[0]), 49);
  expect_error([&] { sample_of(set, 10); }, {"squares", "sample 10"});
  FunctionDatasetOptions none = squares(1);
  none.read = nullptr;
  expect_error([&] { FunctionDataset{none}; }, {"squares", "no function"});
}

TEST(SubsetDataset, TakesSamplesInOrder) {
  const SubsetDataset set(std::make_unique<FunctionDataset>(squares(10)), {9, 2});
  EXPECT_EQ(set.size(), 2);
  EXPECT_EQ(value_of<double>(sample_of(set, 0)[0]), 81);
  EXPECT_EQ(value_of<double>(sample_of(set, 1)[0]), 4);
  expect_error([&] { SubsetDataset(std::make_unique<FunctionDataset>(squares(10)), {10}); }, {"index 10", "0 to 9"});
}

TEST(OpenDatasets, LimitsTakeTheFirstSamples) {
  const DatasetPair all = open_datasets({.name = "digits", .seed = 2});
  const DatasetPair some = open_datasets({.name = "digits", .limit_train = 30, .limit_eval = 20, .seed = 2});
  EXPECT_EQ(some.train->size(), 30);
  EXPECT_EQ(some.eval->size(), 20);
  EXPECT_EQ(sample_of(*some.train, 29), sample_of(*all.train, 29));
}

TEST(OpenDatasets, SyntheticTakesItsShape) {
  const DatasetPair pair = open_datasets(
      {.name = "synthetic", .synthetic_shape = {3, 16, 16}, .synthetic_classes = 5, .synthetic_size = 64});
  EXPECT_EQ(pair.image_shape, (Shape{3, 16, 16}));
  EXPECT_EQ(pair.classes, 5);
  EXPECT_EQ(pair.mean.size(), 3u);
  EXPECT_NE(sample_of(*pair.train, 0), sample_of(*pair.eval, 0));
}

TEST(OpenDatasets, SyntheticEvaluatesFewSamplesUnlessAsked) {
  const auto evaluated = [](std::int64_t limit) {
    return open_datasets({.name = "synthetic", .limit_eval = limit, .synthetic_shape = {3, 4, 4}}).eval->size();
  };
  EXPECT_EQ(evaluated(0), 128);
  EXPECT_EQ(evaluated(20), 20);
  EXPECT_EQ(evaluated(5000), 5000);
  expect_error([&] { evaluated(20000); }, {"limit-eval", "20000", "10000"});
}

TEST(OpenDatasets, BadOptionsAreNamed) {
  expect_error([] { open_datasets({.name = "imagenet"}); }, {"imagenet", "digits", "cifar100"});
  expect_error([] { open_datasets({.name = "mnist"}); }, {"mnist", "data directory"});
  expect_error([] { open_datasets({.name = "digits", .limit_train = 99999}); }, {"limit-train", "99999", "12000"});
  expect_error([] { open_datasets({.name = "digits", .limit_eval = -1}); }, {"limit-eval", "-1"});
}

}  // namespace
}  // namespace lockstep::data

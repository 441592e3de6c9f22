// The work of a run on any data set: subsets, replacement, cache, orders; and the facts that views pass on.
#include "lockstep/data/wrap_sets.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "lockstep/data/array_datasets.h"
#include "lockstep/data/cached_dataset.h"
#include "lockstep/data/class_target.h"
#include "lockstep/data/combined_datasets.h"
#include "lockstep/data/images/decoded_images.h"
#include "tests/data/support.h"

namespace lockstep::data {
namespace {

// Sample i has the value i and the class i * i % 5, which the set may know; odd samples of `broken` cannot be read.
class Squares : public Dataset {
 public:
  explicit Squares(std::int64_t size, bool knows = false, bool broken = false)
      : size_(size), knows_(knows), broken_(broken) {}
  std::int64_t size() const override { return size_; }
  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t classes() const override { return 5; }
  std::string describe() const override { return "squares"; }
  std::int32_t label(std::int64_t index) const override {
    return knows_ ? static_cast<std::int32_t>(index * index % 5) : -1;
  }
  void read(std::int64_t index, std::span<std::byte* const> out) const override {
    check(!broken_ || index % 2 == 0, "squares", "sample {} is broken", index);
    ++reads;
    const auto value = static_cast<double>(index);
    const auto label = static_cast<std::uint8_t>(index * index % 5);
    std::memcpy(out[0], &value, sizeof value);
    std::memcpy(out[1], &label, sizeof label);
  }

  mutable std::atomic<int> reads = 0;

 private:
  std::int64_t size_;
  bool knows_, broken_;
  std::vector<Field> fields_{{"y", Shape{}, DType::F64}, {"label", Shape{}, DType::U8}};
};

double value_at(const Dataset& set, std::int64_t index) { return value_of<double>(sample_of(set, index)[0]); }

void write_lines(const std::filesystem::path& path, const std::string& text) { std::ofstream(path) << text; }

TEST(WrapSets, ASubsetIsThatOfItsFile) {
  const TempDir dir;
  write_lines(dir / "some", "4\n\n2 # two\n4\n");
  const auto set = subset_of(std::make_unique<Squares>(6), dir / "some", "train-subset");
  EXPECT_EQ(set->size(), 3);
  EXPECT_EQ(value_at(*set, 1), 2);
  EXPECT_EQ(set->origin(2), 4);
  EXPECT_EQ(subset_of(std::make_unique<Squares>(6), {}, "train-subset")->size(), 6);
  write_lines(dir / "some", "6\n");
  expect_error([&] { subset_of(std::make_unique<Squares>(6), dir / "some", "eval-subset"); },
               {"--eval-subset", "index 6, expected 0 to 5"});
  write_lines(dir / "some", "# nothing\n");
  expect_error([&] { subset_of(std::make_unique<Squares>(6), dir / "some", "eval-subset"); }, {"has no indices"});
}

TEST(WrapSets, UnreadableSamplesAreReplacedAndCounted) {
  RunData data{.train = std::make_unique<Squares>(6, false, true), .eval = std::make_unique<Squares>(4)};
  wrap_sets(data, {.unreadable = Unreadable::Replace});
  EXPECT_EQ(value_at(*data.train, 1), 2);
  EXPECT_EQ(value_at(*data.eval, 1), 1);
  EXPECT_EQ(data.replaced(), 1);
  RunData plain{.train = std::make_unique<Squares>(6, false, true)};
  wrap_sets(plain, {});
  expect_error([&] { value_at(*plain.train, 1); }, {"sample 1 is broken"});
}

TEST(WrapSets, TheCacheIsSharedByTheSets) {
  auto squares = std::make_unique<Squares>(6);
  const Squares& source = *squares;
  RunData data{.train = std::move(squares), .eval = std::make_unique<Squares>(4)};
  wrap_sets(data, {.cache_mb = 1});
  for (int pass = 0; pass < 3; ++pass) {
    for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(value_at(*data.train, i), static_cast<double>(i));
  }
  EXPECT_EQ(source.reads, 6);
}

class Cropped : public Squares {
 public:
  using Squares::Squares;
  bool is_random() const override { return true; }
};

TEST(WrapSets, ASetOfRandomCropsIsNotCached) {
  RunData data{.train = std::make_unique<SubsetDataset>(std::make_unique<Cropped>(6), std::vector<std::int64_t>{1})};
  EXPECT_TRUE(data.train->is_random()) << "a view passes it on";
  expect_error([&] { wrap_sets(data, {.cache_mb = 1}); }, {"--cache-mb", "would repeat the crops"});
}

TEST(WrapSets, AStreamHasNoTrainingSetToChooseFrom) {
  check_stream_options({});
  for (const SampleOptions& options : {SampleOptions{.eval_subset = "file"}, SampleOptions{.cache_mb = 1},
                                       SampleOptions{.store = true}, SampleOptions{.balanced = true}})
    expect_error([&] { check_stream_options(options); }, {"a run with a stream", "--store"});
}

TEST(WrapSets, BalancedClassesAreThereEquallyOften) {
  for (const bool knows : {false, true}) {
    auto squares = std::make_unique<Squares>(500, knows);
    const Squares& source = *squares;
    RunData data{.train = std::move(squares)};
    order_samples(data, {.balanced = true}, nullptr);
    EXPECT_EQ(source.reads, knows ? 0 : 500) << "labels that are known are not read";
    ASSERT_EQ(data.epoch.order->length(), 500);
    std::vector<int> times(500);
    for (const std::int64_t i : data.epoch.order->indices(1, 0)) ++times[static_cast<std::size_t>(i)];
    for (std::size_t i = 0; i < times.size(); ++i) {
      // A third of 500 for each of the squares modulo 5: for the 100 samples of class 0, the 200 of 1 and the 200 of 4.
      const double expected = 500 / 3.0 / (i % 5 == 0 ? 100 : 200);
      EXPECT_TRUE(times[i] == std::floor(expected) || times[i] == std::ceil(expected)) << i << ": " << times[i];
    }
  }
}

TEST(WrapSets, WeightsAreThoseOfTheSamplesInTheirFiles) {
  const TempDir dir;
  std::string text;
  for (int i = 0; i < 20; ++i) text += i % 3 == 0 ? "2.5\n" : "0\n";
  write_lines(dir / "weights", text);
  RunData data;
  data.train = std::move(split_dataset(std::make_unique<Squares>(20), {0.6, 0.4}, 3)[0]);
  order_samples(data, {.weights = dir / "weights"}, nullptr);
  for (const std::int64_t i : data.epoch.order->indices(1, 0)) EXPECT_EQ(data.train->origin(i) % 3, 0);
  write_lines(dir / "weights", "1\n1\n");
  expect_error([&] { order_samples(data, {.weights = dir / "weights"}, nullptr); }, {"--sample-weights", "2 weights"});
  write_lines(dir / "weights", "1\nnan\n");
  expect_error([&] { order_samples(data, {.weights = dir / "weights"}, nullptr); }, {"line 2: 'nan'"});
}

TEST(ClassTarget, MakesIndicesOfIntegers) {
  const Field mask{"mask", {2, 2}, DType::I64}, channel{"mask", {1, 2, 2}, DType::F32}, other{"y", {3}, DType::F64};
  const ClassTarget target({.field = "mask", .classes = 3, .ignore_index = 255}, 2);
  const std::vector<Field> made{other, {"target", {2, 2}, DType::I32}};
  EXPECT_EQ(target.fields({other, mask}), made);
  EXPECT_EQ(target.fields({other, channel}), made);
  EXPECT_EQ(target.fields({{"mask", {1}, DType::F32}})[0].shape, Shape{});
  expect_error([&] { target.fields({{"mask", {2, 2, 2}, DType::I32}}); }, {"(2, 2, 2)", "one class per sample"});
  const auto apply = [&](std::vector<std::int64_t> values) {
    const double y[3] = {1, 2, 3};
    double copied[3];
    std::vector<std::int32_t> out(4);
    const std::byte* in[2] = {reinterpret_cast<const std::byte*>(y), reinterpret_cast<const std::byte*>(values.data())};
    std::byte* to[2] = {reinterpret_cast<std::byte*>(copied), reinterpret_cast<std::byte*>(out.data())};
    target.apply({.index = 7}, {other, mask}, in, to);
    EXPECT_EQ(copied[2], 3);
    return out;
  };
  EXPECT_EQ(apply({0, 2, 255, 1}), (std::vector<std::int32_t>{0, 2, 255, 1}));
  expect_error([&] { apply({0, 1, 3, 0}); }, {"'mask': element 2 of sample 7 is 3", "0 to 2", "255"});
}

TEST(ClassTarget, ClassesAreCounted) {
  const Squares set(10);
  EXPECT_EQ(count_classes(set, "label", 0, -100, nullptr), (std::vector<std::int64_t>{2, 4, 0, 0, 4}));
  EXPECT_EQ(count_classes(set, "label", 7, 4, nullptr), (std::vector<std::int64_t>{2, 4, 0, 0, 0, 0, 0}));
  expect_error([&] { count_classes(set, "label", 3, -100, nullptr); }, {"sample 2", "'label' is 4", "0 to 2"});
  expect_error([&] { count_classes(set, "none", 3, -100, nullptr); }, {"no field 'none'"});
}

TEST(ClassTarget, FlagsAreFromZeroToOne) {
  const Squares set(10);
  expect_error([&] { check_flags(set, "label", nullptr); }, {"sample 2", "'label' is 4 at element 0", "0 or 1"});
  const DatasetView first(std::make_shared<Squares>(2));
  check_flags(first, "label", nullptr);
}

}  // namespace
}  // namespace lockstep::data

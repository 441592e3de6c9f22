#include "lockstep/data/combined_datasets.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

#include "lockstep/data/array_datasets.h"
#include "lockstep/data/cached_dataset.h"
#include "lockstep/data/inspection.h"
#include "tests/data/support.h"

namespace lockstep::data {
namespace {

// Sample i is the number first + i, and counts how often it was read.
std::unique_ptr<FunctionDataset> numbers(std::int64_t size, double first = 0,
                                         std::shared_ptr<std::atomic<int>> reads = nullptr) {
  return std::make_unique<FunctionDataset>(FunctionDatasetOptions{.size = size,
                                                                  .fields = {{"y", Shape{}, DType::F64}},
                                                                  .description = "numbers",
                                                                  .read = [first, reads](auto i, auto out) {
                                                                    if (reads) ++*reads;
                                                                    const double value = first + static_cast<double>(i);
                                                                    std::memcpy(out[0], &value, sizeof value);
                                                                  }});
}

double number_at(const Dataset& set, std::int64_t index) { return value_of<double>(sample_of(set, index)[0]); }

TEST(ConcatDataset, TakesPartsInOrder) {
  std::vector<std::unique_ptr<Dataset>> parts;
  parts.push_back(numbers(3));
  parts.push_back(numbers(0));
  parts.push_back(numbers(2, 100));
  const ConcatDataset set(std::move(parts));
  EXPECT_EQ(set.size(), 5);
  EXPECT_EQ(set.sizes(), (std::vector<std::int64_t>{3, 0, 2}));
  EXPECT_EQ(number_at(set, 2), 2);
  EXPECT_EQ(number_at(set, 3), 100);
  EXPECT_EQ(number_at(set, 4), 101);
  EXPECT_EQ(set.locate(4), "sample 1");
  expect_error([&] { number_at(set, 5); }, {"sample 5"});
}

TEST(ConcatDataset, FieldsMustAgree) {
  std::vector<std::unique_ptr<Dataset>> parts;
  parts.push_back(numbers(3));
  std::vector<NamedTensor> tensors;
  tensors.push_back({"y", Tensor({2, 4}, DType::F32)});
  parts.push_back(std::make_unique<TensorDataset>(std::move(tensors)));
  expect_error([&] { ConcatDataset{std::move(parts)}; }, {"y (4) f32", "y () f64", "equal fields"});
  expect_error([] { ConcatDataset{{}}; }, {"no data sets"});
}

TEST(Split, PartsAreDisjointNearTheirFractionAndStayWhenSamplesAreAppended) {
  const auto parts = split_by_fraction(10000, {0.7, 0.2, 0.1}, 5);
  ASSERT_EQ(parts.size(), 3u);
  std::vector<std::int64_t> all;
  for (const auto& part : parts) {
    EXPECT_TRUE(std::ranges::is_sorted(part));
    all.insert(all.end(), part.begin(), part.end());
  }
  std::ranges::sort(all);
  ASSERT_EQ(all.size(), 10000u);  // each sample once
  for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], static_cast<std::int64_t>(i));
  EXPECT_NEAR(static_cast<double>(parts[0].size()), 7000, 200);
  EXPECT_NEAR(static_cast<double>(parts[2].size()), 1000, 150);
  const auto longer = split_by_fraction(12000, {0.7, 0.2, 0.1}, 5);
  for (std::size_t p = 0; p < 3; ++p) {
    ASSERT_GE(longer[p].size(), parts[p].size());
    EXPECT_TRUE(std::equal(parts[p].begin(), parts[p].end(), longer[p].begin()));
  }
  EXPECT_NE(split_by_fraction(10000, {0.7}, 6)[0], parts[0]);
  EXPECT_EQ(split_by_fraction(10000, {0.7}, 5)[0], parts[0]);  // what is left is in no part
}

TEST(Split, RefusesWhatIsNoDivision) {
  expect_error([] { split_by_fraction(10, {0.7, 0.4}, 0); }, {"sum to 1.1"});
  expect_error([] { split_by_fraction(10, {0.0}, 0); }, {"fraction 0"});
  expect_error([] { split_by_fraction(10, {}, 0); }, {"no fractions"});
  expect_error([] { split_dataset(numbers(1), {0.5, 0.5}, 0); }, {"has no sample"});
  const auto sets = split_dataset(numbers(100), {0.5, 0.5}, 1);
  EXPECT_EQ(sets[0]->size() + sets[1]->size(), 100);
  EXPECT_NE(number_at(*sets[0], 0), number_at(*sets[1], 0));
}

TEST(Indices, AreReadFromATextFile) {
  const TempDir dir;
  const auto write = [&](const std::string& text) { return dir.write("list.txt", Bytes(text.begin(), text.end())); };
  EXPECT_EQ(read_indices(write("3\n\n 5 # five\r\n0")), (std::vector<std::int64_t>{3, 5, 0}));
  expect_error([&] { read_indices(write("3\nx\n")); }, {"list.txt", "line 2", "'x'"});
  expect_error([&] { read_indices(write("-1\n")); }, {"line 1", "'-1'"});
  expect_error([&] { read_indices(write("1 2\n")); }, {"line 1", "'1 2'"});
}

TEST(CachedDataset, ReadsASampleOnceUpToItsLimit) {
  const auto reads = std::make_shared<std::atomic<int>>(0);
  const CachedDataset set(numbers(10, 0, reads), 4 * sizeof(double));
  for (int round = 0; round < 3; ++round) {
    for (std::int64_t i = 0; i < 10; ++i) EXPECT_EQ(number_at(set, i), static_cast<double>(i));
  }
  EXPECT_EQ(set.bytes(), 4 * sizeof(double));
  EXPECT_EQ(*reads, 30 - 8);  // four samples came from memory, twice
  expect_error([&] { number_at(set, 10); }, {"sample 10"});
}

TEST(CachedDataset, ThreadsMayReadTheSameSamples) {
  const CachedDataset set(numbers(50), 1 << 20);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        for (std::int64_t i = 0; i < 50; ++i) {
          double value = -1;
          std::byte* out[] = {reinterpret_cast<std::byte*>(&value)};
          set.read(i, out);
          if (value != static_cast<double>(i)) ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(set.bytes(), 50 * sizeof(double));
}

TEST(Inspection, CountsWhatIsNotFinite) {
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  std::vector<NamedTensor> tensors;
  tensors.push_back({"x", Tensor::from<float>({3, 2}, std::vector<float>{1, -2, 3, nan, inf, nan})});
  tensors.push_back({"n", Tensor::from<std::int64_t>({3}, std::vector<std::int64_t>{7, 8, 9})});
  const TensorDataset set(std::move(tensors));
  const auto reports = inspect(set);
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].nan, 2);
  EXPECT_EQ(reports[0].infinite, 1);
  EXPECT_EQ(reports[0].first_sample, 1);
  EXPECT_EQ(reports[0].first_element, 1);
  EXPECT_EQ(reports[0].least, -2);
  EXPECT_EQ(reports[0].most, 3);
  EXPECT_NE(reports[0].str().find("2 NaN, 1 infinite, the first at element 1 of sample 1"), std::string::npos)
      << reports[0].str();
  EXPECT_TRUE(reports[1].finite());
  EXPECT_EQ(reports[1].str(), "n () i64: 7 to 9");
  EXPECT_TRUE(inspect(set, {0, 1})[0].finite());
  expect_error([&] { inspect(set, {0, 4}); }, {"[0, 4)"});
}

}  // namespace
}  // namespace lockstep::data

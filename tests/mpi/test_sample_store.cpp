// A data set of which each rank holds a part: loaders make the batches that they make of the whole set.
#include "lockstep/data/sample_store.h"

#include <gtest/gtest.h>

#include <cstring>

#include "lockstep/comm/agreement.h"
#include "lockstep/data/array_datasets.h"
#include "tests/mpi/harness.h"

namespace lockstep::test {
namespace {

using namespace data;

// Sample i has (i, i + 0.25, i + 0.5) and the number i; `absent` cannot be read.
FunctionDataset numbered(std::int64_t size, std::int64_t absent = -1) {
  return FunctionDataset({.size = size,
                          .fields = {{"x", {3}, DType::F32}, {"i", Shape{}, DType::I64}, {"none", {0}, DType::F64}},
                          .classes = 5,
                          .description = "numbered",
                          .read = [absent](std::int64_t index, std::span<std::byte* const> out) {
                            check(index != absent, "numbered", "sample {} cannot be read", index);
                            const auto i = static_cast<float>(index);
                            const float x[3] = {i, i + 0.25F, i + 0.5F};
                            std::memcpy(out[0], x, sizeof x);
                            std::memcpy(out[1], &index, sizeof index);
                          }});
}

DistributedSampler sampler_of(std::int64_t size, std::shared_ptr<const SampleOrder> order = nullptr) {
  return DistributedSampler({.size = order ? order->length() : size,
                             .global_batch = 7,
                             .shards = world().size(),
                             .my_shards = {world().rank(), world().rank() + 1},
                             .seed = 11,
                             .order = std::move(order)});
}

// The batches of `steps` steps equal those of a loader over the whole set.
void expect_equal_batches(Loader& stored, Loader& whole, int steps) {
  for (int step = 0; step < steps; ++step) {
    const Batch mine = stored.next(), expected = whole.next();
    EXPECT_EQ(mine.step.samples, expected.step.samples);
    for (std::size_t f = 0; f < expected.fields.size(); ++f) {
      ASSERT_EQ(mine.fields[f].shape(), expected.fields[f].shape());
      if (expected.fields[f].bytes() == 0) continue;
      EXPECT_EQ(std::memcmp(mine.fields[f].raw(), expected.fields[f].raw(), expected.fields[f].bytes()), 0) << step;
    }
    EXPECT_EQ(stored.position(), whole.position());
  }
}

TEST(SampleStore, LoadersMakeTheBatchesOfTheWholeSet) {
  for (const std::int64_t size : {1, 2, 7, 100}) {
    const FunctionDataset set = numbered(size);
    SampleStore store(set, world(), 2);
    EXPECT_EQ(store.size(), size);
    EXPECT_EQ(store.classes(), 5);
    EXPECT_EQ(store.bytes(), static_cast<std::size_t>(part_of(size, world().size(), world().rank()).size()) * 20);
    for (const int threads : {0, 1, 3}) {
      Loader stored(store, sampler_of(size), {}, {.threads = threads, .prefetch = 2, .supply = &store});
      Loader whole(set, sampler_of(size), {}, {.threads = 0});
      expect_equal_batches(stored, whole, 12);
      store.clear();
    }
  }
}

TEST(SampleStore, ALoaderMaySeekAndRepeatSamples) {
  const FunctionDataset set = numbered(30);
  SampleStore store(set, world());
  const auto order = std::make_shared<WeightedOrder>(std::vector<double>(30, 1.0), 75);  // each sample 2 or 3 times
  Loader stored(store, sampler_of(30, order), {}, {.threads = 2, .prefetch = 3, .supply = &store});
  Loader whole(set, sampler_of(30, order), {}, {.threads = 0});
  expect_equal_batches(stored, whole, 4);
  for (const SamplerPosition& position : {SamplerPosition{2, 14}, SamplerPosition{0, 0}}) {
    stored.seek(position);
    whole.seek(position);
    expect_equal_batches(stored, whole, 15);
  }
  stored.seek({0, 0});
  EXPECT_EQ(store.brought(), 0u);
}

TEST(SampleStore, HoldsOnlyWhatComingStepsNeed) {
  const FunctionDataset set = numbered(400);
  SampleStore store(set, world());
  Loader stored(store, sampler_of(400), {}, {.threads = 0, .supply = &store});
  for (int step = 0; step < 100; ++step) {
    stored.next();
    EXPECT_EQ(store.brought(), 0u);  // without threads, a step's samples are released in the same call
  }
}

TEST(SampleStore, ASampleThatNobodyBroughtIsAnError) {
  const FunctionDataset set = numbered(8);
  SampleStore store(set, world());
  std::int64_t other = 0;
  while (other < 8 && part_of(8, world().size(), world().rank()).begin <= other &&
         other < part_of(8, world().size(), world().rank()).end)
    ++other;
  float x[3];
  std::int64_t i = -1;
  std::byte* out[] = {reinterpret_cast<std::byte*>(x), reinterpret_cast<std::byte*>(&i), nullptr};
  const std::string before = error_of([&] { store.read(other, out); });
  if (world().size() > 1) {
    EXPECT_NE(before.find(formatted("sample {} is on rank", other)), std::string::npos) << before;
  }
  const std::vector<std::int64_t> wanted =
      world().size() > 1 ? std::vector<std::int64_t>{other, other} : std::vector<std::int64_t>{};
  store.bring(wanted);
  store.release(std::vector<std::int64_t>(wanted.begin(), wanted.begin() + (wanted.empty() ? 0 : 1)));
  if (world().size() > 1) {
    store.read(other, out);
    EXPECT_EQ(i, other);
    EXPECT_EQ(x[2], static_cast<float>(other) + 0.5F);
    store.release(std::vector<std::int64_t>{other});
    EXPECT_NE(error_of([&] { store.read(other, out); }), "no error");
  }
}

TEST(SampleStore, ErrorsAreThoseOfAllRanks) {
  const std::string absent = error_of([] { SampleStore(numbered(40, 39), world(), 3); });
  EXPECT_NE(absent.find("sample 39 cannot be read"), std::string::npos) << absent;
  if (world().size() == 1) return;
  const std::string sizes = error_of([] { SampleStore(numbered(40 + world().rank()), world()); });
  EXPECT_NE(sizes.find("data set of the store"), std::string::npos) << sizes;
}

}  // namespace
}  // namespace lockstep::test

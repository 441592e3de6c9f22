#include <atomic>
#include <set>

#include "data/datasets/digits.h"
#include "lockstep/data/array_datasets.h"
#include "lockstep/data/loader.h"
#include "tests/data/support.h"

namespace lockstep::data {
namespace {

FunctionDataset counting(std::int64_t size, std::int64_t broken = -1) {
  return FunctionDataset({.size = size,
                          .fields = {{"x", {2}, DType::F64}, {"index", Shape{}, DType::I64}},
                          .description = "counting",
                          .read = [broken](std::int64_t i, auto out) {
                            check(i != broken, "counting", "sample {} is broken", i);
                            const double x[] = {static_cast<double>(i), 0.5};
                            std::memcpy(out[0], x, sizeof x);
                            std::memcpy(out[1], &i, sizeof i);
                          }});
}

std::vector<std::int64_t> indices(const Batch& batch) {
  const auto values = batch.at("index").data<std::int64_t>();
  return {values.begin(), values.end()};
}

class LoaderThreads : public testing::TestWithParam<int> {
 protected:
  LoaderOptions options(int prefetch = 3) const { return {.threads = GetParam(), .prefetch = prefetch}; }
};
INSTANTIATE_TEST_SUITE_P(Threads, LoaderThreads, testing::Values(0, 1, 3), testing::PrintToStringParamName());

TEST_P(LoaderThreads, GivesTheSamplersBatchesInOrder) {
  const auto set = counting(23);
  DistributedSampler sampler({.size = 23, .global_batch = 5, .seed = 1});
  Loader loader(set, sampler, {}, options());
  for (int t = 0; t < 17; ++t) {
    const StepSamples expected = sampler.next();
    const Batch batch = loader.next();
    EXPECT_EQ(batch.step.samples, expected.samples);
    EXPECT_EQ(batch.step.offset, expected.offset);
    EXPECT_EQ(indices(batch), expected.samples);
    EXPECT_EQ(batch.at("x").shape(), (Shape{batch.samples(), 2}));
    for (std::size_t i = 0; i < expected.samples.size(); ++i) {
      EXPECT_EQ(batch.at("x").data<double>()[2 * i], static_cast<double>(expected.samples[i]));
      EXPECT_EQ(batch.at("x").data<double>()[2 * i + 1], 0.5);
    }
    EXPECT_EQ(loader.position(), sampler.position());
  }
}

TEST_P(LoaderThreads, SeekingToWhatWasConsumedEqualsGoingOn) {
  const auto set = counting(23);
  const DistributedSampler sampler({.size = 23, .global_batch = 5, .seed = 1});
  Loader straight(set, sampler, {}, options()), resumed(set, sampler, {}, options());
  for (int t = 0; t < 7; ++t) straight.next();
  const SamplerPosition position = straight.position();
  EXPECT_EQ(position, (SamplerPosition{1, 10}));
  resumed.next();
  resumed.seek(position);
  EXPECT_EQ(resumed.position(), position);
  for (int t = 0; t < 7; ++t) EXPECT_EQ(indices(straight.next()), indices(resumed.next()));
}

TEST_P(LoaderThreads, EpochIsTheRestOfTheEpoch) {
  const auto set = counting(10);
  Loader loader(set, DistributedSampler({.size = 10, .global_batch = 3, .seed = 1}), {}, options());
  std::multiset<std::int64_t> seen;
  const auto take = [&](const Batch& batch) {
    const auto all = indices(batch);
    seen.insert(all.begin(), all.end());
  };
  for (Batch& batch : loader.epoch()) {
    take(batch);
    if (seen.size() == 6) break;
  }
  EXPECT_EQ(loader.position(), (SamplerPosition{0, 6}));
  int steps = 0;
  for (Batch& batch : loader.epoch()) {
    take(batch);
    ++steps;
  }
  EXPECT_EQ(steps, 2);
  EXPECT_EQ(seen, (std::multiset<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(loader.position(), (SamplerPosition{1, 0}));
  for (Batch& batch : loader.epoch()) {
    EXPECT_EQ(batch.step.epoch, 1);
    ++steps;
  }
  EXPECT_EQ(steps, 6);
}

TEST_P(LoaderThreads, ABrokenSampleIsAnErrorOfItsBatchAlone) {
  const auto set = counting(12, 7);
  Loader loader(set, DistributedSampler({.size = 12, .global_batch = 3, .shuffle = false}), {}, options());
  EXPECT_EQ(indices(loader.next()), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(indices(loader.next()), (std::vector<std::int64_t>{3, 4, 5}));
  for (int attempt = 0; attempt < 2; ++attempt) {
    expect_error([&] { loader.next(); }, {"counting", "sample 7 is broken"});
    EXPECT_EQ(loader.position(), (SamplerPosition{0, 6}));
  }
  loader.seek({.epoch = 0, .offset = 9});
  EXPECT_EQ(indices(loader.next()), (std::vector<std::int64_t>{9, 10, 11}));
}

TEST_P(LoaderThreads, ARankWithoutSamplesGetsEmptyBatches) {
  const auto set = counting(5);
  Loader loader(set, DistributedSampler({.size = 5, .global_batch = 2, .shards = 4, .my_shards = {3, 4}}), {},
                options());
  for (int t = 0; t < 4; ++t) {
    const Batch batch = loader.next();
    EXPECT_EQ(batch.at("x").shape(), (Shape{0, 2}));
    EXPECT_EQ(batch.step.global_size, t == 2 ? 1 : 2);
  }
}

TEST_P(LoaderThreads, ConvertsFloatingFields) {
  const auto set = counting(4);
  LoaderOptions opts = options();
  opts.floats = DType::F32;
  Loader loader(set, DistributedSampler({.size = 4, .global_batch = 4, .shuffle = false}), {}, opts);
  const Batch batch = loader.next();
  EXPECT_EQ(batch.at("x").data<float>()[6], 3.0f);
  EXPECT_EQ(indices(batch), (std::vector<std::int64_t>{0, 1, 2, 3}));
}

TEST_P(LoaderThreads, EndsCleanlyWithWorkUnderWay) {
  const auto set = counting(1000);
  for (int taken = 0; taken < 5; ++taken) {
    Loader loader(set, DistributedSampler({.size = 1000, .global_batch = 10}), {}, options(2));
    for (int t = 0; t < taken; ++t) loader.next();
  }
}

TEST_P(LoaderThreads, AugmentationIsTheSameAtAnyNumberOfRanks) {
  const auto set = datasets::make_digits({.size = 40});
  const Transforms transforms{
      std::make_shared<ImageTransform>(ImageOptions{.crop_padding = 3, .flip = true, .cutout = 8})};
  const SamplerOptions sampling{.size = 40, .global_batch = 13, .seed = 6};
  Loader alone(*set, DistributedSampler(sampling), transforms, {.threads = 0});
  std::vector<std::unique_ptr<Loader>> ranks;
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    SamplerOptions mine = sampling;
    mine.shards = 4;
    mine.my_shards = part_of(4, 3, rank);
    ranks.push_back(std::make_unique<Loader>(*set, DistributedSampler(mine), transforms, options()));
  }
  for (int t = 0; t < 9; ++t) {
    const Batch expected = alone.next();
    std::vector<float> images;
    for (auto& rank : ranks) {
      const Batch batch = rank->next();
      const auto pixels = batch.at("image").data<float>();
      images.insert(images.end(), pixels.begin(), pixels.end());
    }
    const auto whole = expected.at("image").data<float>();
    EXPECT_EQ(images, std::vector<float>(whole.begin(), whole.end()));
  }
}

TEST(Loader, ReadsAheadNoFurtherThanAsked) {
  std::atomic<int> reads = 0;
  const FunctionDataset set({.size = 100, .fields = {{"x", Shape{}, DType::U8}}, .read = [&](auto, auto out) {
                               *out[0] = std::byte{1};
                               ++reads;
                             }});
  {
    Loader loader(set, DistributedSampler({.size = 100, .global_batch = 10}), {}, {.threads = 3, .prefetch = 2});
    EXPECT_EQ(reads, 0);
    loader.next();
    loader.next();
  }
  EXPECT_GE(reads, 20);
  EXPECT_LE(reads, 40);
}

TEST(Loader, RecycledMemoryIsUsedAgainAndHoldsTheNewSamples) {
  const auto set = counting(20);
  Loader loader(set, DistributedSampler({.size = 20, .global_batch = 5, .shuffle = false}), {}, {.threads = 0});
  Batch first = loader.next();
  const std::byte* memory = first.at("x").raw();
  loader.recycle(std::move(first));
  const Batch second = loader.next();
  EXPECT_EQ(second.at("x").raw(), memory);
  EXPECT_EQ(second.at("x").data<double>()[0], 5.0);
}

TEST(Loader, UserTransformsChain) {
  class Doubled : public Transform {
   public:
    std::vector<Field> fields(const std::vector<Field>& in) const override {
      return {in[find_field("doubled", in, "x")], {"key", Shape{}, DType::I64}};
    }
    void apply(const SampleKey& key, const std::vector<Field>&, std::span<const std::byte* const> in,
               std::span<std::byte* const> out) const override {
      double x[2];
      std::memcpy(x, in[0], sizeof x);
      for (double& v : x) v *= 2;
      std::memcpy(out[0], x, sizeof x);
      const std::int64_t name = 100 * key.epoch + key.index;
      std::memcpy(out[1], &name, sizeof name);
    }
  };
  const auto set = counting(3);
  Loader loader(set, DistributedSampler({.size = 3, .global_batch = 3, .shuffle = false}),
                {std::make_shared<Doubled>(), std::make_shared<Doubled>()}, {.threads = 1, .floats = DType::F32});
  loader.next();
  const Batch batch = loader.next();
  EXPECT_EQ(batch.names, (std::vector<std::string>{"x", "key"}));
  EXPECT_EQ(batch.at("x").data<float>()[4], 8.0f);
  EXPECT_EQ(batch.at("key").data<std::int64_t>()[2], 102);
  expect_error([&] { (void)batch.at("label"); }, {"no field 'label'", "x, key"});
}

TEST(Loader, BadOptionsAreNamed) {
  const auto set = counting(10);
  const DistributedSampler sampler({.size = 10});
  expect_error([&] { Loader(set, sampler, {}, {.threads = -1}); }, {"-1 threads"});
  expect_error([&] { Loader(set, sampler, {}, {.threads = 1, .prefetch = 0}); }, {"prefetch 0"});
  expect_error([&] { Loader(set, DistributedSampler({.size = 11})); }, {"11 samples", "has 10"});
  expect_error([&] { Loader(set, sampler, {std::make_shared<ImageTransform>(ImageOptions{})}); },
               {"no field 'image'", "x, index"});
}

}  // namespace
}  // namespace lockstep::data

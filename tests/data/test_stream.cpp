#include "lockstep/data/stream.h"
#include "tests/data/support.h"

namespace lockstep::data {
namespace {

// A stream of 0, 1, 2, ... `count` - 1.
StreamOptions numbers(std::int64_t count, std::int64_t batch, int prefetch) {
  return {.fields = {{"x", {1}, DType::F64}},
          .pull =
              [count, n = std::int64_t{0}](StreamSample& sample) mutable {
                if (n == count) return false;
                const auto value = static_cast<double>(n++);
                std::memcpy(sample.fields[0], &value, sizeof value);
                return true;
              },
          .batch = batch,
          .prefetch = prefetch};
}

class StreamPrefetch : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ahead, StreamPrefetch, testing::Values(0, 1, 4), testing::PrintToStringParamName());

TEST_P(StreamPrefetch, GivesEverySampleOnceAndEnds) {
  for (const std::int64_t count : {0, 1, 6, 7}) {
    StreamLoader loader(numbers(count, 3, GetParam()));
    std::int64_t seen = 0;
    while (const std::optional<Batch> batch = loader.next()) {
      EXPECT_EQ(batch->step.offset, seen);
      EXPECT_EQ(batch->step.global_size, batch->samples());
      EXPECT_EQ(batch->at("x").shape(), (Shape{std::min<std::int64_t>(3, count - seen), 1}));
      for (double v : batch->at("x").data<double>()) EXPECT_EQ(v, static_cast<double>(seen++));
      EXPECT_EQ(loader.consumed(), seen);
    }
    EXPECT_EQ(seen, count);
    EXPECT_FALSE(loader.next().has_value());
    EXPECT_FALSE(loader.next().has_value());
  }
}

TEST_P(StreamPrefetch, IdsOfRanksDoNotMeet) {
  StreamLoader loader(numbers(5, 2, GetParam()).for_rank(1, 3));
  std::vector<std::int64_t> ids;
  while (const auto batch = loader.next())
    ids.insert(ids.end(), batch->step.samples.begin(), batch->step.samples.end());
  EXPECT_EQ(ids, (std::vector<std::int64_t>{1, 4, 7, 10, 13}));
}

TEST_P(StreamPrefetch, TheUserMayNameSamples) {
  StreamOptions options = numbers(4, 3, GetParam());
  options.pull = [inner = options.pull](StreamSample& sample) {
    sample.id = 1000 - sample.id;
    return inner(sample);
  };
  StreamLoader loader(std::move(options));
  EXPECT_EQ(loader.next()->step.samples, (std::vector<std::int64_t>{1000, 999, 998}));
  EXPECT_EQ(loader.next()->step.samples, (std::vector<std::int64_t>{997}));
}

TEST_P(StreamPrefetch, AnErrorComesAfterTheWholeBatchesBeforeItAndStays) {
  StreamOptions options = numbers(100, 3, GetParam());
  options.pull = [inner = options.pull, n = 0](StreamSample& sample) mutable {
    check(n++ < 7, "simulation", "diverged at step {}", n);
    return inner(sample);
  };
  StreamLoader loader(std::move(options));
  EXPECT_EQ(loader.next()->samples(), 3);
  EXPECT_EQ(loader.next()->samples(), 3);
  for (int attempt = 0; attempt < 2; ++attempt) {
    expect_error([&] { loader.next(); }, {"simulation", "diverged at step 8"});
  }
}

TEST_P(StreamPrefetch, ConvertsAndRecycles) {
  StreamOptions options = numbers(6, 2, GetParam());
  options.floats = DType::F32;
  StreamLoader loader(std::move(options));
  for (int t = 0; t < 3; ++t) {
    std::optional<Batch> batch = loader.next();
    ASSERT_TRUE(batch.has_value());
    EXPECT_EQ(batch->at("x").data<float>()[1], static_cast<float>(2 * t + 1));
    loader.recycle(std::move(*batch));
  }
}

TEST_P(StreamPrefetch, AnEndlessStreamCanBeLeft) {
  StreamLoader loader(numbers(-1, 3, GetParam()));
  EXPECT_TRUE(loader.next().has_value());
}

TEST(Stream, BadOptionsAreNamed) {
  expect_error([] { StreamLoader(numbers(1, 0, 1)); }, {"batch 0"});
  expect_error([] { StreamLoader(numbers(1, 1, -1)); }, {"prefetch -1"});
  expect_error([] { StreamLoader({.fields = {{"x", {1}, DType::F64}}}); }, {"`pull` is empty"});
}

}  // namespace
}  // namespace lockstep::data

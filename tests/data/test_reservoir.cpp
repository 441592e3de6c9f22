#include "lockstep/data/reservoir.h"

#include <array>
#include <atomic>
#include <cmath>
#include <set>
#include <thread>

#include "lockstep/data/stream.h"
#include "tests/data/support.h"

namespace lockstep::data {
namespace {

using Policy = ReservoirPolicy;

const std::vector<Field> kReservoirFields{{"x", {2}, DType::F32}, {"n", {}, DType::I64}};

// Offers the samples [from, to), each with its number in all elements, in batches of `batch`.
void offer(Reservoir& reservoir, std::int64_t from, std::int64_t to, std::int64_t batch = 1) {
  for (std::int64_t n = from; n < to; ++n) {
    std::array<float, 2> x{static_cast<float>(n), static_cast<float>(n)};
    std::array<std::byte*, 2> fields{reinterpret_cast<std::byte*>(x.data()), reinterpret_cast<std::byte*>(&n)};
    reservoir.put(100 + n, fields);
    if ((n + 1 - from) % batch == 0) reservoir.end_batch();
  }
}

// The ids of the state, by slot; the values must belong to them.
std::vector<std::int64_t> ids_of(const Reservoir& reservoir) {
  const Reservoir::Frozen frozen = reservoir.freeze();
  std::vector<std::int64_t> ids;
  for (std::int64_t slot = 0; slot < frozen.counts().held; ++slot) {
    const Reservoir::Sample& sample = frozen.at(slot);
    float x = 0;
    std::memcpy(&x, sample.bytes.data() + sizeof x, sizeof x);
    EXPECT_EQ(static_cast<std::int64_t>(x), sample.id - 100);
    ids.push_back(sample.id);
  }
  return ids;
}

// How often each of `samples` samples stays in a reservoir of 10, over `seeds` seeds.
std::vector<int> survivors(std::int64_t samples, int seeds, Policy policy) {
  std::vector<int> count(static_cast<std::size_t>(samples));
  for (int seed = 0; seed < seeds; ++seed) {
    Reservoir reservoir(kReservoirFields, {.capacity = 10, .policy = policy}, static_cast<std::uint64_t>(seed));
    offer(reservoir, 0, samples);
    for (std::int64_t n = 0; n < samples; ++n) reservoir.release();
    const std::vector<std::int64_t> ids = ids_of(reservoir);
    EXPECT_EQ(ids.size(), 10U);
    for (const std::int64_t id : ids) ++count[static_cast<std::size_t>(id - 100)];
  }
  return count;
}

TEST(Reservoir, UniformKeepsEverySampleWithTheSameChance) {
  constexpr int kSeeds = 2000;
  const std::vector<int> count = survivors(50, kSeeds, Policy::Uniform);
  const double mean = kSeeds * 10.0 / 50, deviation = std::sqrt(mean * (1 - 10.0 / 50));
  for (const int n : count) EXPECT_NEAR(n, mean, 5 * deviation);
}

TEST(Reservoir, RecentForgetsExponentially) {
  constexpr int kSeeds = 2000;
  const std::vector<int> count = survivors(50, kSeeds, Policy::Recent);
  for (std::size_t n = 10; n < count.size(); ++n) {
    const double chance = std::pow(0.9, static_cast<double>(count.size() - 1 - n));
    EXPECT_NEAR(count[n], kSeeds * chance, 5 * std::sqrt(kSeeds * chance * (1 - chance)) + 1e-9) << n;
  }
}

TEST(Reservoir, DrawsDistinctPastSamplesUpToItsFraction) {
  Reservoir reservoir(kReservoirFields, {.capacity = 40, .replay = 0.75}, 1);
  EXPECT_TRUE(reservoir.draw(8).empty()) << "nothing is held";
  offer(reservoir, 0, 3);
  EXPECT_EQ(reservoir.draw(8).size(), 3U);
  offer(reservoir, 3, 30);
  const std::vector<std::int64_t> slots = reservoir.draw(8);
  EXPECT_EQ(std::set<std::int64_t>(slots.begin(), slots.end()).size(), 6U);
  for (const std::int64_t slot : slots) EXPECT_LT(slot, 30);
  EXPECT_EQ(reservoir.draw(8), slots) << "before the next batch the choice is the same";
  EXPECT_TRUE(reservoir.draw(1).empty()) << "one sample of a batch is new";
  reservoir.end_batch();
  EXPECT_NE(reservoir.draw(8), slots);
}

TEST(Reservoir, TheStateLeavesOutBatchesThatWereMadeAhead) {
  for (const Policy policy : {Policy::Uniform, Policy::Recent}) {
    Reservoir behind(kReservoirFields, {.capacity = 7, .policy = policy}, 3),
        ahead(kReservoirFields, {.capacity = 7, .policy = policy}, 3);
    offer(ahead, 0, 40, 4);
    offer(ahead, 40, 42, 4);  // a batch that is being made
    for (std::int64_t batch = 0; batch < 10; ++batch) {
      EXPECT_EQ(ids_of(ahead), ids_of(behind)) << batch;
      EXPECT_EQ(ahead.counts(), behind.counts()) << batch;
      offer(behind, 4 * batch, 4 * batch + 4, 4);
      behind.release();
      ahead.release();
    }
    EXPECT_EQ(ids_of(ahead), ids_of(behind));
    expect_error([&] { ahead.release(); }, {"release() of a batch that does not exist"});
  }
}

TEST(Reservoir, GoesOnFromItsStateWithTheSameChoices) {
  Reservoir whole(kReservoirFields, {.capacity = 7}, 3), restored(kReservoirFields, {.capacity = 7}, 3);
  offer(whole, 0, 20, 4);
  for (int batch = 0; batch < 5; ++batch) whole.release();
  {
    const Reservoir::Frozen state = whole.freeze();
    std::vector<Reservoir::Sample> samples;
    for (std::int64_t slot = 0; slot < state.counts().held; ++slot) samples.push_back(state.at(slot));
    restored.restore(std::move(samples), state.counts());
  }
  for (std::int64_t from = 20; from < 60; from += 4) {
    EXPECT_EQ(whole.draw(6), restored.draw(6));
    offer(whole, from, from + 4, 4);
    offer(restored, from, from + 4, 4);
    whole.release();
    restored.release();
    EXPECT_EQ(ids_of(whole), ids_of(restored));
  }
}

TEST(Reservoir, BadOptionsAndStatesAreNamed) {
  expect_error([] { Reservoir(kReservoirFields, {.capacity = 0}, 1); }, {"capacity 0"});
  expect_error([] { Reservoir(kReservoirFields, {.capacity = 1, .replay = 1}, 1); }, {"is 1", "below 1"});
  Reservoir reservoir(kReservoirFields, {.capacity = 2}, 1);
  expect_error([&] { reservoir.restore({}, {.offered = 1, .batches = 1, .held = 1}); }, {"0 samples with counts of 1"});
  expect_error([&] { reservoir.restore({{}}, {.offered = 1, .batches = 1, .held = 1}); }, {"0 bytes, expected 16"});
  expect_error([&] { reservoir.restore({{}}, {.offered = 0, .batches = 1, .held = 1}); }, {"1 samples of 0"});
  offer(reservoir, 0, 1);
  expect_error([&] { reservoir.restore({}, {}); }, {"restore() after 1 samples"});
}

// A stream of 0, 1, 2, ... `count` - 1, from `first` on.
StreamOptions numbers(std::int64_t first, std::int64_t count, int prefetch, std::shared_ptr<Reservoir> reservoir) {
  return {.fields = {{"x", {1}, DType::F64}},
          .pull =
              [count, n = first](StreamSample& sample) mutable {
                *sample.field<double>(0) = static_cast<double>(n);
                return n++ < count;
              },
          .batch = 6,
          .first_id = first,
          .prefetch = prefetch,
          .reservoir = std::move(reservoir)};
}
std::shared_ptr<Reservoir> small_reservoir() {
  return std::make_shared<Reservoir>(std::vector<Field>{{"x", {1}, DType::F64}}, ReservoirOptions{.capacity = 9}, 5);
}
std::vector<std::vector<double>> all_batches(StreamLoader& loader) {
  std::vector<std::vector<double>> all;
  while (const auto batch = loader.next()) {
    const auto values = batch->at("x").data<double>();
    all.emplace_back(values.begin(), values.end());
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(static_cast<std::int64_t>(values[i]), batch->step.samples[i]);
  }
  return all;
}

TEST(StreamReservoir, BatchesMixPastAndNewSamplesAtAnyPrefetch) {
  StreamLoader plain(numbers(0, 50, 0, small_reservoir()));
  const std::vector<std::vector<double>> expected = all_batches(plain);
  EXPECT_EQ(plain.consumed(), 50);
  ASSERT_EQ(expected.size(), 1U + 15U) << "6 new samples, then 3 in each batch; 2 in the last one";
  EXPECT_EQ(expected[0], (std::vector<double>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(expected.back().size(), 5U);
  for (std::size_t b = 1; b < expected.size(); ++b) {
    const double first_new = static_cast<double>(6 + 3 * (b - 1));
    for (std::size_t i = 0; i < 3; ++i) EXPECT_LT(expected[b][i], first_new);
    for (std::size_t i = 3; i < expected[b].size(); ++i)
      EXPECT_EQ(expected[b][i], first_new + static_cast<double>(i - 3));
  }
  for (const int prefetch : {1, 4}) {
    StreamLoader loader(numbers(0, 50, prefetch, small_reservoir()));
    EXPECT_EQ(all_batches(loader), expected) << prefetch;
  }
}

TEST(StreamReservoir, AStreamGoesOnAfterWhatWasConsumed) {
  StreamLoader plain(numbers(0, 50, 0, small_reservoir()));
  const std::vector<std::vector<double>> expected = all_batches(plain);
  const auto first = small_reservoir(), second = small_reservoir();
  StreamLoader begun(numbers(0, 50, 4, first));
  for (int b = 0; b < 5; ++b) EXPECT_TRUE(begun.next().has_value());
  {
    const Reservoir::Frozen state = first->freeze();
    std::vector<Reservoir::Sample> samples;
    for (std::int64_t slot = 0; slot < state.counts().held; ++slot) samples.push_back(state.at(slot));
    second->restore(std::move(samples), state.counts());
  }
  StreamLoader resumed(numbers(begun.consumed(), 50, 4, second));
  EXPECT_EQ(all_batches(resumed), std::vector<std::vector<double>>(expected.begin() + 5, expected.end()));
}

TEST(StreamReservoir, AProducerThatWaitsIsToldThatNobodyNeedsItsSamples) {
  std::atomic<bool> waits = false, told = false;
  {
    StreamOptions options = numbers(0, 50, 1, nullptr);
    options.pull = [&, n = 0](StreamSample& sample) mutable {
      if (n++ < 6) return true;  // the first batch
      waits = true;
      while (!sample.stop.stop_requested()) std::this_thread::yield();
      told = true;
      return false;
    };
    StreamLoader loader(std::move(options));
    EXPECT_TRUE(loader.next().has_value());
    while (!waits) std::this_thread::yield();
  }
  EXPECT_TRUE(told);
}

}  // namespace
}  // namespace lockstep::data

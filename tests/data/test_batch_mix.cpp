// Mixup and CutMix: amounts and labels against plain loops, and the same batches at any number of ranks.
#include <algorithm>
#include <cmath>
#include <set>

#include "lockstep/data/array_datasets.h"
#include "lockstep/data/batch_mix.h"
#include "lockstep/data/loader.h"
#include "tests/data/support.h"

namespace lockstep::data {
namespace {

constexpr std::int64_t kClasses = 7;

// Image i is filled with i; its label is i % 7; "id" is not mixed.
FunctionDataset flat(std::int64_t size) {
  return FunctionDataset(
      {.size = size,
       .fields = {{"image", {2, 6, 8}, DType::F32}, {"label", Shape{}, DType::I32}, {"id", Shape{}, DType::I64}},
       .classes = kClasses,
       .description = "flat",
       .read = [](std::int64_t i, auto out) {
         std::fill_n(reinterpret_cast<float*>(out[0]), 96, static_cast<float>(i));
         const auto label = static_cast<std::int32_t>(i % kClasses);
         std::memcpy(out[1], &label, sizeof label);
         std::memcpy(out[2], &i, sizeof i);
       }});
}

struct Step {
  std::vector<float> images{}, labels{};  // labels: the shares of all classes
  std::vector<std::int32_t> classes{};
  std::vector<std::int64_t> ids{};
  bool operator==(const Step&) const = default;
};

std::vector<Step> steps(const Dataset& set, std::int64_t batch, std::int64_t ranks, const MixOptions& options,
                        int threads = 0) {
  std::vector<Step> all(6);
  for (std::int64_t r = 0; r < ranks; ++r) {
    Loader loader(set,
                  DistributedSampler(
                      {.size = set.size(), .global_batch = batch, .shards = ranks, .my_shards = {r, r + 1}, .seed = 9}),
                  {}, {.threads = threads, .mix = std::make_shared<BatchMix>(options)});
    EXPECT_EQ(loader.fields()[1], (Field{"label", Shape{}, DType::I32}));
    EXPECT_EQ(loader.fields()[3], (Field{"label_shares", {kClasses}, DType::F32}));
    for (Step& step : all) {
      Batch mixed = loader.next();
      const auto images = mixed.at("image").data<float>();
      const auto labels = mixed.at("label_shares").data<float>();
      const auto classes = mixed.at("label").data<std::int32_t>();
      const auto ids = mixed.at("id").data<std::int64_t>();
      step.images.insert(step.images.end(), images.begin(), images.end());
      step.labels.insert(step.labels.end(), labels.begin(), labels.end());
      step.classes.insert(step.classes.end(), classes.begin(), classes.end());
      step.ids.insert(step.ids.end(), ids.begin(), ids.end());
      loader.recycle(std::move(mixed));
    }
  }
  return all;
}

// Sizes that leave an odd rest, and parts of ranks that begin in the middle of a pair.
TEST(BatchMix, BatchesAreTheSameAtAnyNumberOfRanks) {
  const auto set = flat(53);
  for (const MixOptions& options :
       {MixOptions{.classes = kClasses, .mixup_alpha = 0.4},
        MixOptions{.classes = kClasses, .mixup_alpha = 1.5, .cutmix_alpha = 1, .probability = 0.8}}) {
    for (const std::int64_t batch : {10, 11, 3}) {
      const auto one = steps(set, batch, 1, options);
      for (const std::int64_t ranks : {2, 3, 4, 5})
        EXPECT_EQ(steps(set, batch, ranks, options), one) << batch << " " << ranks;
      EXPECT_EQ(steps(set, batch, 2, options, 2), one) << "threads";
    }
  }
}

TEST(BatchMix, MixupIsTheWeightedSumOfPartners) {
  const auto set = flat(40);
  std::set<float> shares;
  for (const Step& step : steps(set, 11, 1, {.classes = kClasses, .mixup_alpha = 1})) {
    for (std::int64_t i = 0; i < 11 && i < std::ssize(step.ids); ++i) {
      const auto at = [&](std::int64_t position) { return step.ids[static_cast<std::size_t>(position)]; };
      const std::int64_t own = at(i), other = at(BatchMix::partner(i, std::ssize(step.ids)));
      const auto labels = std::span(step.labels).subspan(static_cast<std::size_t>(i * kClasses), kClasses);
      const float pixel = step.images[static_cast<std::size_t>(i * 96)];
      for (std::int64_t p = 0; p < 96; ++p) EXPECT_EQ(step.images[static_cast<std::size_t>(i * 96 + p)], pixel);
      const double share =
          own == other ? 1 : (double{pixel} - static_cast<double>(other)) / static_cast<double>(own - other);
      shares.insert(static_cast<float>(share));
      for (std::int64_t c = 0; c < kClasses; ++c) {
        const double expected = (own % kClasses == c ? share : 0) + (other % kClasses == c ? 1 - share : 0);
        EXPECT_NEAR(labels[static_cast<std::size_t>(c)], expected, 1e-4);
      }
      const std::int32_t label = step.classes[static_cast<std::size_t>(i)];
      EXPECT_EQ(label, std::ranges::max_element(labels) - labels.begin()) << "the class with the larger share";
    }
  }
  EXPECT_GT(shares.size(), 15U) << "pairs have shares of their own";
}

TEST(BatchMix, CutMixGivesARectangleAndItsShare) {
  const auto set = flat(40);
  int cut = 0;
  for (const Step& step : steps(set, 8, 1, {.classes = kClasses, .cutmix_alpha = 1})) {
    for (std::int64_t i = 0; i < 8; ++i) {
      const auto own = static_cast<float>(step.ids[static_cast<std::size_t>(i)]);
      const auto other = static_cast<float>(step.ids[static_cast<std::size_t>(i ^ 1)]);
      const auto pixel = [&](std::int64_t c, std::int64_t y, std::int64_t x) {
        return step.images[static_cast<std::size_t>(((i * 2 + c) * 6 + y) * 8 + x)];
      };
      std::int64_t foreign = 0, top = 6, bottom = 0, left = 8, right = 0;
      for (std::int64_t y = 0; y < 6; ++y) {
        for (std::int64_t x = 0; x < 8; ++x) {
          ASSERT_TRUE(pixel(0, y, x) == own || pixel(0, y, x) == other);
          ASSERT_EQ(pixel(0, y, x), pixel(1, y, x));
          if (pixel(0, y, x) != other) continue;
          ++foreign;
          top = std::min(top, y), bottom = std::max(bottom, y + 1), left = std::min(left, x),
          right = std::max(right, x + 1);
        }
      }
      if (foreign > 0) {
        EXPECT_EQ(foreign, (bottom - top) * (right - left));
      }
      cut += foreign > 0;
      const auto own_class = static_cast<std::int64_t>(own) % kClasses,
                 other_class = static_cast<std::int64_t>(other) % kClasses;
      const float share = step.labels[static_cast<std::size_t>(i * kClasses + own_class)];
      if (own_class != other_class) {
        EXPECT_NEAR(share, 1 - static_cast<double>(foreign) / 48, 1e-6);
      }
    }
  }
  EXPECT_GT(cut, 24);
}

TEST(BatchMix, TheMeanShareIsThatOfTheBetaDistribution) {
  const auto set = flat(1000);
  for (const double alpha : {0.2, 1.0, 4.0}) {
    double sum = 0, squares = 0, count = 0;
    for (const Step& step : steps(set, 1000, 1, {.classes = kClasses, .mixup_alpha = alpha})) {
      for (std::size_t i = 0; i < step.ids.size(); ++i) {
        const auto own = static_cast<double>(step.ids[i]), other = static_cast<double>(step.ids[i ^ 1]);
        const double share = (double{step.images[i * 96]} - other) / (own - other);
        sum += share;
        squares += share * share;
        ++count;
      }
    }
    const double mean = sum / count, variance = squares / count - mean * mean;
    EXPECT_NEAR(mean, 0.5, 0.03) << alpha;
    EXPECT_NEAR(variance, 1 / (4 * (2 * alpha + 1)), 0.02) << alpha;
  }
}

TEST(BatchMix, NeedsAtMostOneSampleMoreOnEachSide) {
  for (const std::int64_t size : {1, 2, 7, 10}) {
    for (std::int64_t begin = 0; begin < size; ++begin) {
      for (std::int64_t end = begin + 1; end <= size; ++end) {
        const Range needed = BatchMix::needed({.global_size = size, .local = {begin, end}});
        EXPECT_LE(begin - needed.begin, 1);
        EXPECT_LE(needed.end - end, 1);
        for (std::int64_t p = begin; p < end; ++p) {
          const std::int64_t other = BatchMix::partner(p, size);
          EXPECT_TRUE(other >= needed.begin && other < needed.end);
          EXPECT_TRUE(other != p || size == 1);
        }
      }
    }
  }
  EXPECT_EQ(BatchMix::needed({.global_size = 8, .local = {3, 3}}), (Range{3, 3}));
}

TEST(BatchMix, RefusesWhatItCannotMix) {
  EXPECT_THROW(BatchMix({.classes = 0, .mixup_alpha = 1}), Error);
  EXPECT_THROW(BatchMix({.classes = 3}), Error);
  EXPECT_THROW(BatchMix({.classes = 3, .mixup_alpha = -1}), Error);
  EXPECT_THROW(BatchMix({.classes = 3, .mixup_alpha = 1, .probability = 1.5}), Error);
  const BatchMix mix({.classes = 3, .mixup_alpha = 1});
  expect_error(
      [&] {
        mix.fields({{"image", {3, 4, 4}, DType::U8}, {"label", Shape{}, DType::I32}});
      },
      {"'image' is u8"});
  expect_error([&] { mix.fields({{"image", {3, 4, 4}, DType::F32}, {"label", {3}, DType::F32}}); }, {"'label' is f32"});
  const auto set = flat(10);
  Loader loader(set, DistributedSampler({.size = 10, .global_batch = 10}), {},
                {.threads = 0, .mix = std::make_shared<BatchMix>(MixOptions{.classes = 3, .mixup_alpha = 1})});
  expect_error([&] { loader.next(); }, {"'label' is", "0 to 2"});
}

TEST(LabelShares, SamplesThatAreNotMixedHaveOneClass) {
  const auto set = flat(9);
  for (const DType type : {DType::F32, DType::F64}) {
    Loader loader(set, DistributedSampler({.size = 9, .global_batch = 9, .shuffle = false}),
                  {std::make_shared<LabelShares>(kClasses, type)}, {.threads = 0});
    const BatchMix mix({.classes = kClasses, .mixup_alpha = 1});
    if (type == DType::F32) {
      EXPECT_EQ(loader.fields(), mix.fields(set.fields())) << "the fields of mixed batches";
    }
    const Batch batch = loader.next();
    for (std::int64_t i = 0; i < 9; ++i) {
      for (std::int64_t c = 0; c < kClasses; ++c) {
        const auto at = static_cast<std::size_t>(i * kClasses + c);
        const Tensor& shares = batch.at("label_shares");
        const double share = type == DType::F32 ? double{shares.data<float>()[at]} : shares.data<double>()[at];
        EXPECT_EQ(share, i % kClasses == c ? 1 : 0);
      }
    }
  }
  EXPECT_THROW(LabelShares(0, DType::F32), Error);
  EXPECT_THROW(LabelShares(3, DType::I32), Error);
  expect_error([&] { LabelShares(3, DType::F32).fields({{"label", {3}, DType::F32}}); }, {"'label' is f32"});
}

}  // namespace
}  // namespace lockstep::data

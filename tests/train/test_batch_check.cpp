// Which batches leave a batch norm one value per channel: against counting every part.
#include "lockstep/train/prepare/batch_check.h"

#include <gtest/gtest.h>

namespace lockstep::train {
namespace {

std::vector<RunningStatistics> norm(std::int64_t per_sample, bool synchronised) {
  return {{.mean = nullptr,
           .variance = nullptr,
           .batches = nullptr,
           .momentum = 0.1,
           .per_sample = per_sample,
           .sums = {},
           .path = "bn1",
           .synchronised = synchronised}};
}

// Samples that a norm sees together: of each shard's micro-batch, or of all shards'.
bool sees_one(const BatchParts& parts, std::int64_t samples, bool synchronised) {
  for (std::int64_t micro = 0; micro < parts.accumulate; ++micro) {
    std::int64_t together = 0;
    for (std::int64_t shard = 0; shard < parts.shards; ++shard) {
      const std::int64_t n = part_of(part_of(samples, parts.shards, shard).size(), parts.accumulate, micro).size();
      if (!synchronised && n == 1) return true;
      together += n;
    }
    if (synchronised && together == 1) return true;
  }
  return false;
}

TEST(SingleValueNorm, IsFoundWhereverOnePartHasIt) {
  for (const bool synchronised : {false, true}) {
    for (std::int64_t shards = 1; shards <= 5; ++shards) {
      for (std::int64_t accumulate = 1; accumulate <= 4; ++accumulate) {
        for (std::int64_t samples = 0; samples <= 50; ++samples) {
          const BatchParts parts{.shards = shards, .accumulate = accumulate};
          EXPECT_EQ(!single_value_norm(norm(1, synchronised), parts, samples).empty(),
                    sees_one(parts, samples, synchronised))
              << shards << " shards, " << accumulate << " micro-batches, " << samples << " samples";
          EXPECT_EQ(single_value_norm(norm(4, synchronised), parts, samples), "");
        }
      }
    }
  }
}

TEST(SingleValueNorm, IsNamedWithWhatHelps) {
  const std::string text = single_value_norm(norm(1, false), {.shards = 3, .accumulate = 2}, 11);
  for (const char* part :
       {"[batch_norm2d] bn1: ", "a batch of 11 samples", "3 parts (ranks or shards) of 2 micro-batches", "--batch-size",
        "--global-batch", "--remainder drop"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
}

TEST(SampleName, HasTheIdWhereItIsKnown) {
  data::Batch batch;
  batch.step.samples = {17, 4711};
  EXPECT_EQ(sample_name(batch, 1), "sample 4711 (row 1 of this rank's 2)");
  EXPECT_EQ(sample_name(batch, 2), "row 2 of this rank's batch");
}

}  // namespace
}  // namespace lockstep::train

#include "lockstep/train/run/start_checks.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "lockstep/data/array_datasets.h"

namespace lockstep {
namespace {

// Of `size` samples of one number: 0, but 1 at `changed`.
std::string fingerprint_of(std::int64_t size, std::int64_t changed) {
  const data::FunctionDataset dataset({.size = size,
                                       .fields = {{"x", Shape{1}, DType::F32}},
                                       .read = [=](std::int64_t index, std::span<std::byte* const> out) {
                                         const float value = index == changed ? 1.0f : 0.0f;
                                         std::memcpy(out[0], &value, sizeof value);
                                       }});
  return train::fingerprint(dataset);
}

TEST(Fingerprint, OfASmallSetSeesEverySample) {
  for (const std::int64_t size : {1, 2, 10, 63, 64}) {
    std::set<std::string> all{fingerprint_of(size, -1)};
    for (std::int64_t changed = 0; changed < size; ++changed) all.insert(fingerprint_of(size, changed));
    EXPECT_EQ(static_cast<std::int64_t>(all.size()), size + 1) << size << " samples";
  }
}

TEST(Fingerprint, OfALargeSetSeesSamplesOfAllItsParts) {
  for (const std::int64_t read : {0, 156, 5000, 9843})
    EXPECT_NE(fingerprint_of(10000, read), fingerprint_of(10000, -1)) << read;
}

TEST(Fingerprint, TellsTheSizeAndTakesAnEmptySet) {
  EXPECT_NE(fingerprint_of(10, -1), fingerprint_of(11, -1));
  EXPECT_TRUE(fingerprint_of(0, -1).starts_with("0 samples"));
}

}  // namespace
}  // namespace lockstep

#include <gtest/gtest.h>

#include "lockstep/core/partition.h"
#include "lockstep/core/random.h"

namespace lockstep {
namespace {

// Known answers of the reference implementation (Random123, kat_vectors, philox4x32 10 rounds).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox(0, 0, 0), (Philox{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~0ull, ~0ull, ~0ull), (Philox{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e),
            (Philox{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStream, BelowIsUniformAndInRange) {
  RandomStream random(1, 2);
  std::array<int, 5> counts{};
  for (int i = 0; i < 50000; ++i) ++counts[random.below(5)];
  for (int n : counts) EXPECT_NEAR(n, 10000, 500);
}

TEST(RandomStream, NormalHasUnitVariance) {
  RandomStream random(3, 4);
  double sum = 0, square = 0;
  for (int i = 0; i < 100000; ++i) {
    const double v = random.normal();
    sum += v;
    square += v * v;
  }
  EXPECT_NEAR(sum / 1e5, 0, 0.02);
  EXPECT_NEAR(square / 1e5, 1, 0.02);
}

TEST(Partition, PartsAreContiguousCompleteAndBalanced) {
  for (std::int64_t n : {0, 1, 2, 7, 128, 1000}) {
    for (std::int64_t parts : {1, 2, 3, 5, 8}) {
      std::int64_t end = 0;
      for (std::int64_t i = 0; i < parts; ++i) {
        const Range r = part_of(n, parts, i);
        EXPECT_EQ(r.begin, end);
        EXPECT_GE(r.size(), n / parts);
        EXPECT_LE(r.size(), n / parts + 1);
        end = r.end;
      }
      EXPECT_EQ(end, n);
    }
  }
  EXPECT_EQ(part_of(128, 3, 0).size(), 43);
  EXPECT_EQ(part_of(128, 3, 2).size(), 42);
}

}  // namespace
}  // namespace lockstep

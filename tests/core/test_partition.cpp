#include "lockstep/core/partition.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Partition, TheFirstPartsGetOneMore) {
  EXPECT_EQ(part_of(128, 3, 0), (Range{0, 43}));
  EXPECT_EQ(part_of(128, 3, 2), (Range{86, 128}));
  EXPECT_EQ(part_of(2, 3, 2), (Range{2, 2}));
}

TEST(Partition, PartsInBlocksCoverTheRangeOnce) {
  const Range all{64, 1000};
  for (std::int64_t parts = 1; parts <= 20; ++parts) {
    std::int64_t end = all.begin;
    for (std::int64_t i = 0; i < parts; ++i) {
      const Range part = part_in_blocks(all, parts, i, 64);
      EXPECT_EQ(part.begin, end) << "part " << i << " of " << parts;
      EXPECT_TRUE(part.begin % 64 == 0 || part.size() == 0) << "part " << i << " of " << parts;
      end = part.end;
    }
    EXPECT_EQ(end, all.end) << parts << " parts";
  }
}

TEST(Partition, AnIntersectionHasTheElementsOfBoth) {
  for (std::int64_t a = 0; a < 5; ++a) {
    for (std::int64_t b = a; b < 5; ++b) {
      const Range both = intersection({1, 4}, {a, b});
      std::int64_t expected = 0;
      for (std::int64_t i = a; i < b; ++i) {
        if (i < 1 || i >= 4) continue;
        ++expected;
        EXPECT_TRUE(both.begin <= i && i < both.end) << i << " in " << a << " to " << b;
      }
      EXPECT_EQ(both.size(), expected) << a << " to " << b;
    }
  }
}

}  // namespace
}  // namespace lockstep

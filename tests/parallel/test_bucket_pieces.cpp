// How buckets are cut: pieces of all ranks cover every bucket once, in whole blocks, with tags of their own, and what a
// rank owns is what its pieces leave with it.
#include "lockstep/parallel/reduce/bucket_pieces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "lockstep/parallel/reduce/bucket_blocks.h"

namespace lockstep {
namespace {

constexpr std::int64_t kBlock = parallel::BucketPieces::kBlock;

parallel::Domains domains_of(const std::vector<int>& domain_of, int rank) {
  parallel::Domains d{.rank = rank, .domain_of = domain_of, .members = {}};
  for (int r = 0; r < static_cast<int>(domain_of.size()); ++r) {
    const auto domain = static_cast<std::size_t>(domain_of[static_cast<std::size_t>(r)]);
    d.members.resize(std::max(d.members.size(), domain + 1));
    d.members[domain].push_back(r);
  }
  return d;
}

std::vector<std::vector<int>> all_groupings() {
  return {{0}, {0, 0, 0}, {0, 1}, {0, 1, 2, 3}, {0, 0, 1, 1}, {0, 1, 1}, {0, 1, 0, 1, 0}, {0, 0, 0, 1, 2}};
}

const std::vector<std::int64_t> kSizes{0, 1, 1023, 1025, 5000, 70'001};

TEST(BucketBlocks, AreNumberedOneBucketAfterTheOther) {
  std::vector<plan::Bucket> buckets;
  for (const std::int64_t elements : kSizes) buckets.push_back({.entries = {}, .elements = elements});
  const parallel::BucketBlocks blocks(buckets);
  std::int64_t next = 0;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    EXPECT_EQ(blocks.of(b), blocks.at(b, Range{0, buckets[b].elements})) << b;
    for (std::int64_t begin = 0; begin < buckets[b].elements; begin += kBlock, ++next) {
      const std::int64_t last = std::min(begin + kBlock, buckets[b].elements) - 1;
      EXPECT_EQ(blocks.at(b, begin), next);
      EXPECT_EQ(blocks.at(b, last), next);
      EXPECT_EQ(blocks.bucket_of(next), b);
    }
  }
  EXPECT_EQ(blocks.count(), next);
  EXPECT_EQ(blocks.at(4, Range{1000, 1025}), (Range{blocks.of(4).begin, blocks.of(4).begin + 2}));
}

TEST(BucketPieces, CoverEveryElementOfADomainOnce) {
  for (const std::vector<int>& grouping : all_groupings()) {
    for (const std::int64_t n : kSizes) {
      std::vector<std::vector<int>> seen(grouping.size(), std::vector<int>(static_cast<std::size_t>(n)));  // by domain
      for (int rank = 0; rank < static_cast<int>(grouping.size()); ++rank) {
        const parallel::Domains domains = domains_of(grouping, rank);
        parallel::BucketPieces pieces(domains, 8192);
        const Range mine = pieces.add(0, n, 4);
        for (std::int64_t i = mine.begin; i < mine.end; ++i) {
          for (int d = 0; d < domains.count(); ++d) {
            const Range part = pieces.part(pieces[i], d);
            EXPECT_TRUE(part.size() == 0 || part.begin % kBlock == 0);
            for (std::int64_t e = part.begin; e < part.end; ++e)
              ++seen[static_cast<std::size_t>(domains.mine())][static_cast<std::size_t>(e)];
          }
        }
      }
      for (int d = 0; d < domains_of(grouping, 0).count(); ++d) {
        for (const int times : seen[static_cast<std::size_t>(d)]) ASSERT_EQ(times, 1) << n;
      }
    }
  }
}

TEST(BucketPieces, TagsAreOfOnePieceAndAlikeInAllDomains) {
  const std::vector<int> grouping{0, 0, 1, 1};
  std::set<int> of_domain[2];
  for (int rank = 0; rank < 4; ++rank) {
    parallel::BucketPieces pieces(domains_of(grouping, rank), 8192);
    std::int64_t count = 0;
    for (int bucket = 0; bucket < 3; ++bucket) count += pieces.add(bucket, 20'000, 8).size();
    for (std::int64_t i = 0; i < count; ++i)
      EXPECT_TRUE(of_domain[grouping[static_cast<std::size_t>(rank)]].insert(pieces[i].tag).second);
  }
  EXPECT_EQ(of_domain[0], of_domain[1]);
}

TEST(BucketPieces, WhatOneRankOwnsTheOthersOfItsSliceReceive) {
  for (const std::vector<int>& grouping : all_groupings()) {
    for (const std::int64_t n : kSizes) {
      std::vector<int> owners(static_cast<std::size_t>(n));
      for (int rank = 0; rank < static_cast<int>(grouping.size()); ++rank) {
        const parallel::Domains domains = domains_of(grouping, rank);
        const parallel::BucketPieces pieces(domains, 1 << 20);
        std::int64_t owned = 0, received = 0, driven = 0;
        for (const Range range : pieces.owned_by(rank, n, true)) {
          owned += range.size();
          for (std::int64_t e = range.begin; e < range.end; ++e) ++owners[static_cast<std::size_t>(e)];
        }
        for (const Range range : pieces.received(n)) received += range.size();
        for (const Range range : pieces.owned_by(rank, n, false)) driven += range.size();
        EXPECT_EQ(owned + received, driven);
      }
      for (const int count : owners) ASSERT_EQ(count, 1);
    }
  }
}

}  // namespace
}  // namespace lockstep

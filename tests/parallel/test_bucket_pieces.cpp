// How buckets are cut: pieces of all ranks cover every bucket once, in whole blocks, with tags of their own, and what a
// rank owns is what its pieces leave with it.
#include "lockstep/parallel/reduce/bucket_pieces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/parallel/reduce/bucket_blocks.h"
#include "tests/messages.h"

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

// Two ranks tell the messages of pieces that are under way together by their tags alone.
TEST(BucketPieces, TagsAreOfOnePieceOfARankAndAlikeOnAllRanks) {
  for (const std::vector<int>& grouping : all_groupings()) {
    std::map<std::tuple<int, int, std::int64_t>, int> tags;  // by bucket, slice and index
    for (int rank = 0; rank < static_cast<int>(grouping.size()); ++rank) {
      parallel::BucketPieces pieces(domains_of(grouping, rank), 8192);
      std::int64_t count = 0;
      for (int bucket = 0; const std::int64_t elements : {20'000, 1500, 70'001, 20'000})
        count += pieces.add(bucket++, elements, 8).size();
      std::set<int> mine;
      for (std::int64_t i = 0; i < count; ++i) {
        const parallel::BucketPiece& piece = pieces[i];
        EXPECT_TRUE(mine.insert(piece.tag).second) << "bucket " << piece.bucket << ", slice " << piece.slice_number;
        const auto known = tags.try_emplace({piece.bucket, piece.slice_number, piece.index}, piece.tag).first;
        EXPECT_EQ(known->second, piece.tag) << "bucket " << piece.bucket << ", slice " << piece.slice_number;
      }
    }
  }
}

TEST(BucketPieces, TagsAreLimitedPerSliceAndOnlyBetweenDomains) {
  constexpr int kMost = comm::Communicator::kMaxTag;
  parallel::BucketPieces near(domains_of(std::vector<int>{0, 0}, 0), 1 << 20),
      far(domains_of(std::vector<int>{0, 0, 1, 1}, 0), 1 << 20);
  for (int bucket = 0; bucket <= kMost; ++bucket) near.add(bucket, 2 * kBlock, 4);
  for (int bucket = 0; bucket < kMost; ++bucket) far.add(bucket, 2 * kBlock, 4);  // two slices of a piece each
  const std::string error = error_of([&] { far.add(kMost, 2 * kBlock, 4); });
  EXPECT_TRUE(has(error, "need 30000 tags, expected at most 29999: take larger buckets (--bucket-mb)")) << error;
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

// Where control blocks lie, and the sums over them, for ranks of several domains whose memory is plain memory.
#include "lockstep/parallel/control/control_memory.h"

#include <gtest/gtest.h>

#include <bit>
#include <numeric>
#include <set>

#include "lockstep/core/error.h"
#include "lockstep/parallel/control/control_block.h"

namespace lockstep {
namespace {

constexpr parallel::ControlSize kSize{.sums = 3, .words = 2};
const parallel::Domains kDomains{.rank = 0, .domain_of = {0, 1, 0, 1, 0}, .members = {{0, 2, 4}, {1, 3}}};

parallel::WorldLayout world(std::int64_t shards) { return {0, 5, shards}; }

TEST(ControlMemory, BlocksAreDisjointAndADomainsAreTogether) {
  for (const std::int64_t shards : {0, 7, 12}) {
    std::vector<std::uint64_t> memory(parallel::ControlMemory::bytes(world(shards), kSize) / sizeof(std::uint64_t));
    const parallel::ControlMemory blocks(std::as_writable_bytes(std::span(memory)), kDomains, world(shards), kSize);
    ASSERT_EQ(blocks.ranks(), 5);
    std::set<const std::uint64_t*> seen;
    for (const std::uint32_t step : {1U, 2U}) {
      for (int d = 0; d < kDomains.count(); ++d) {
        const std::span<std::uint64_t> all = blocks.blocks_of(d, step);
        const std::uint64_t* at = all.data();
        for (int r : kDomains.of(d)) {
          const std::span<std::uint64_t> block = blocks.block(r, step);
          EXPECT_EQ(block.size(),
                    kSize.words + kSize.sums * world(shards).partials()[static_cast<std::size_t>(r)].size());
          EXPECT_EQ(block.data(), at);
          at += block.size();
          for (const std::uint64_t& word : block) EXPECT_TRUE(seen.insert(&word).second) << "two blocks share a word";
        }
        EXPECT_EQ(at, all.data() + all.size());
      }
    }
    EXPECT_EQ(seen.size(), memory.size());
    EXPECT_EQ(blocks.block(3, 1).data(), blocks.block(3, 3).data()) << "two sets in turn";
  }
}

TEST(ControlMemory, RefusesTooLittleMemory) {
  std::vector<std::byte> memory(8);
  EXPECT_THROW(parallel::ControlMemory(memory, kDomains, world(0), kSize), Error);
}

TEST(PartialSums, AddsAllRanksPartialsByTheTree) {
  for (const std::int64_t shards : {0, 7, 12}) {
    parallel::PartialSums sums(world(shards), 2);
    for (int repetition = 0; repetition < 2; ++repetition) {
      sums.begin();
      double expected = 0;
      for (const auto& of_rank : world(shards).partials()) {
        std::vector<std::uint64_t> bits;
        for (std::size_t i = 0; i < 2 * of_rank.size(); ++i) {
          const double value = static_cast<double>(bits.size() + 1) * (i % 2 == 0 ? 1 : -2);
          if (i % 2 == 0) expected += value;
          bits.push_back(std::bit_cast<std::uint64_t>(value));
        }
        sums.append(bits);
      }
      sums.add_up();
      EXPECT_EQ(sums.totals()[0], expected) << "small integers: exact in any order";
    }
  }
}

TEST(WordText, IsDecimal) { EXPECT_EQ(parallel::decimal(~std::uint64_t{0}), "18446744073709551615"); }

}  // namespace
}  // namespace lockstep

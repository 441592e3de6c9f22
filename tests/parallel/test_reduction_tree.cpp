// However shards are spread over ranks, sums are the bits of the canonical tree, evaluated here by its definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "lockstep/core/bfloat16.h"
#include "lockstep/core/error.h"
#include "lockstep/core/float16.h"
#include "lockstep/core/random.h"
#include "lockstep/parallel/tree/world_layout.h"

namespace lockstep {
namespace {

using Vector = std::vector<float>;

// Magnitudes from 2^-20 to 2^20, so that another order of addition gives other bits.
std::vector<Vector> random_shards(std::int64_t shards, std::int64_t n) {
  RandomStream random(static_cast<std::uint64_t>(shards), 17);
  std::vector<Vector> all(static_cast<std::size_t>(shards), Vector(static_cast<std::size_t>(n)));
  for (Vector& shard : all) {
    for (float& v : shard) v = static_cast<float>(random.normal() * std::exp2(random.uniform(-20, 20)));
  }
  return all;
}

// Node (level, index) by definition: its left half plus its right half, if there is one.
Vector node_sum(const std::vector<Vector>& shards, int level, std::size_t index) {
  if (level == 0) return shards[index];
  Vector sum = node_sum(shards, level - 1, 2 * index);
  if (((2 * index + 1) << (level - 1)) < shards.size()) {
    const Vector right = node_sum(shards, level - 1, 2 * index + 1);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += right[i];
  }
  return sum;
}

Vector tree_of(const std::vector<Vector>& shards) {
  int level = 0;
  while ((std::size_t{1} << level) < shards.size()) ++level;
  return node_sum(shards, level, 0);
}

bool same_bits(const Vector& a, const Vector& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// A rank's part: its shards one after the other into its slots, joined as the tree says. Returns its open partial sums.
std::vector<Vector> rank_partials(const parallel::ReductionTree& tree, Range range, const std::vector<Vector>& shards) {
  std::vector<Vector> slots(static_cast<std::size_t>(tree.slots_needed(range)));
  std::vector<parallel::TreeNode> stack;
  for (std::int64_t shard = range.begin; shard < range.end; ++shard) {
    slots.at(stack.size()) = shards[static_cast<std::size_t>(shard)];  // at(): slots_needed() must be enough
    std::size_t top = stack.size();
    for (int joins = tree.push(stack, {0, shard}); joins > 0; --joins, --top) {
      parallel::add_into(static_cast<std::int64_t>(slots[top].size()), slots[top].data(), slots[top - 1].data());
    }
  }
  EXPECT_EQ(stack, tree.open_partials(range));
  slots.resize(stack.size());
  return slots;
}

Vector sum_of(const std::vector<Vector>& operands, const std::vector<parallel::TreeMerge>& merges) {
  std::vector<const float*> pointers;
  for (const Vector& v : operands) pointers.push_back(v.data());
  Vector out(operands[0].size());
  const std::array<float*, 1> outs{out.data()};
  parallel::tree_sum<float>(pointers, merges, static_cast<std::int64_t>(out.size()), outs, {});
  return out;
}

TEST(ReductionTree, SumIsTheCanonicalTreesForEveryPartition) {
  for (std::int64_t count = 1; count <= 17; ++count) {
    const parallel::ReductionTree tree(count);
    const std::vector<Vector> shards = random_shards(count, 3);
    const Vector want = tree_of(shards);
    for (std::uint32_t cuts = 0; cuts < 1u << (count - 1); ++cuts) {  // bit i: a rank begins at shard i + 1
      std::vector<Vector> operands;
      std::vector<parallel::TreeNode> partials;
      Range range{0, 0};
      while (range.end < count) {
        range.begin = range.end++;
        while (range.end < count && (cuts >> (range.end - 1) & 1) == 0) ++range.end;
        for (Vector& v : rank_partials(tree, range, shards)) operands.push_back(std::move(v));
        for (const parallel::TreeNode& node : tree.open_partials(range)) partials.push_back(node);
      }
      ASSERT_EQ(operands.size(), partials.size());
      const auto merges = parallel::merges_to_root(tree, partials);
      ASSERT_EQ(merges.size(), operands.size() - 1);
      ASSERT_TRUE(same_bits(sum_of(operands, merges), want)) << count << " shards, cuts " << cuts;
      for (const parallel::TreeMerge& m : merges) {  // the same additions, one by one on whole vectors
        parallel::add_into<float>(3, operands[static_cast<std::size_t>(m.from)].data(),
                                  operands[static_cast<std::size_t>(m.into)].data());
      }
      ASSERT_TRUE(same_bits(operands[0], want)) << count << " shards, cuts " << cuts;
    }
  }
}

TEST(ReductionTree, OrderMatters) {  // else the test above would prove nothing
  const std::vector<Vector> shards = random_shards(17, 3);
  Vector left_to_right = shards[0];
  for (std::size_t i = 1; i < shards.size(); ++i) parallel::add_into<float>(3, shards[i].data(), left_to_right.data());
  EXPECT_FALSE(same_bits(left_to_right, tree_of(shards)));
}

void expect_sums_into_any_operand(std::int64_t n) {
  std::vector<Vector> shards = random_shards(13, n);
  const parallel::ReductionTree tree(13);
  std::vector<parallel::TreeNode> partials;
  std::vector<const float*> pointers;
  for (std::int64_t shard = 0; shard < 13; ++shard) {
    partials.push_back(tree.open_partials({shard, shard + 1})[0]);
    pointers.push_back(shards[static_cast<std::size_t>(shard)].data());
  }
  const auto merges = parallel::merges_to_root(tree, partials);
  const Vector want = tree_of(shards);
  for (const std::size_t into : {0u, 5u, 12u}) {
    const std::vector<Vector> saved = shards;
    const std::array<float*, 1> outs{shards[into].data()};
    parallel::tree_sum<float>(pointers, merges, n, outs, {});
    EXPECT_TRUE(same_bits(shards[into], want)) << "into operand " << into;
    for (std::size_t i = 0; i < shards.size(); ++i) {
      EXPECT_TRUE(i == into || same_bits(shards[i], saved[i])) << "operand " << i;
      std::ranges::copy(saved[i], shards[i].begin());
    }
  }
}

TEST(ReductionTree, SumsLongVectorsIntoAnyOperand) {
  expect_sums_into_any_operand(3 * 512 + 77);
  expect_sums_into_any_operand((1 << 17) + 77);  // by several threads, where there are any
}

// Of every upper half of a float with some lower halves about the ties: subnormals, infinities and NaN among them.
TEST(ReductionTree, WiresRoundAsTheirTypesDo) {
  Vector values;
  for (std::uint32_t high = 0; high < 1U << 16; ++high) {
    for (const std::uint32_t low : {0x0000U, 0x0001U, 0x0fffU, 0x1000U, 0x1001U, 0x3000U, 0x7fffU, 0x8000U, 0x8001U})
      values.push_back(std::bit_cast<float>(high << 16 | low));
  }
  for (const parallel::Wire wire : {parallel::Wire::BF16, parallel::Wire::F16}) {
    Vector rounded(values.size());
    const std::array<const float*, 1> operands{values.data()};
    const std::array<float*, 1> outs{rounded.data()};
    parallel::tree_sum<float>(operands, {}, static_cast<std::int64_t>(values.size()), outs, {.wire = wire});
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float want = wire == parallel::Wire::BF16 ? static_cast<float>(BFloat16(values[i]))
                                                      : static_cast<float>(Float16(values[i]));
      ASSERT_EQ(std::bit_cast<std::uint32_t>(rounded[i]), std::bit_cast<std::uint32_t>(want))
          << "of bits " << std::bit_cast<std::uint32_t>(values[i]);
    }
  }
}

TEST(ReductionTree, OneShardNeedsNoAddition) {
  const parallel::ReductionTree tree(1);
  EXPECT_EQ(tree.slots_needed({0, 1}), 1);
  const std::vector<parallel::TreeNode> root = tree.open_partials({0, 1});
  ASSERT_EQ(root.size(), 1u);
  EXPECT_TRUE(parallel::merges_to_root(tree, root).empty());
}

TEST(ReductionTree, SlotsGrowAsTheLogarithm) {
  for (std::int64_t shards = 1; shards <= 1024; shards *= 2) {
    EXPECT_EQ(parallel::ReductionTree(shards).slots_needed({0, shards}),
              std::bit_width(static_cast<std::uint64_t>(shards)));
  }
}

TEST(ReductionTree, RefusesWhatDoesNotCoverTheShards) {
  const parallel::ReductionTree tree(5);
  EXPECT_THROW(parallel::merges_to_root(tree, tree.open_partials({0, 4})), Error);
  EXPECT_THROW(parallel::merges_to_root(tree, tree.open_partials({1, 5})), Error);
  EXPECT_THROW(parallel::merges_to_root(tree, {}), Error);
  EXPECT_THROW(parallel::ReductionTree(0), Error);
}

// The walk that the gradient engine takes, for worlds up to more ranks than shards.
TEST(ShardWalk, FillsAndJoinsSlotsToTheCanonicalSum) {
  for (std::int64_t count = 1; count <= 17; ++count) {
    const std::vector<Vector> shards = random_shards(count, 3);
    const Vector want = tree_of(shards);
    for (int size = 1; size <= 19; ++size) {
      std::vector<Vector> operands;
      std::vector<parallel::TreeNode> partials;
      std::int64_t visited = 0;
      for (int rank = 0; rank < size; ++rank) {
        const parallel::WorldLayout world(rank, size, count);
        std::vector<Vector> slots(static_cast<std::size_t>(world.my_slots()));
        parallel::ShardWalk walk(world);
        for (; !walk.done(); walk.next()) {
          ASSERT_EQ(walk.shard(), visited++);
          ASSERT_EQ(walk.last(), walk.shard() + 1 == world.my_shards().end);
          slots.at(static_cast<std::size_t>(walk.slot())) = shards[static_cast<std::size_t>(walk.shard())];
          walk.join([&](int from, int into) {
            parallel::add_into<float>(3, slots.at(static_cast<std::size_t>(from)).data(),
                                      slots.at(static_cast<std::size_t>(into)).data());
          });
        }
        const auto open = world.partials()[static_cast<std::size_t>(rank)];
        ASSERT_EQ(walk.slot(), static_cast<int>(open.size()));
        slots.resize(open.size());
        std::ranges::move(slots, std::back_inserter(operands));
        std::ranges::copy(open, std::back_inserter(partials));
      }
      ASSERT_EQ(visited, count);
      const parallel::ReductionTree tree(count);
      ASSERT_TRUE(same_bits(sum_of(operands, parallel::merges_to_root(tree, partials)), want))
          << count << " shards on " << size;
    }
  }
}

TEST(ShardWalk, BeginsAgain) {
  const parallel::WorldLayout world(0, 1, 6);
  parallel::ShardWalk walk(world);
  const auto slots = [&] {
    std::vector<int> all;
    for (walk.begin(); !walk.done(); walk.next()) all.push_back(walk.slot());
    return all;
  };
  EXPECT_EQ(slots(), slots());
  EXPECT_EQ(slots(), (std::vector<int>{0, 1, 1, 2, 1, 2}));
}

TEST(WorldLayout, EachRankIsOneShardWithoutTheOption) {
  const parallel::WorldLayout world(2, 5, 0);
  EXPECT_EQ(world.tree.shards(), 5);
  EXPECT_EQ(world.my_shards(), (Range{2, 3}));
  EXPECT_EQ(world.my_slots(), 1);
}

}  // namespace
}  // namespace lockstep

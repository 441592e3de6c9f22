// Folds of some of the shards, sums that round to a narrow wire, and what such a wire carries.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "lockstep/core/bfloat16.h"
#include "lockstep/core/float16.h"
#include "lockstep/core/random.h"
#include "lockstep/parallel/tree/reduction_tree.h"

namespace lockstep {
namespace {

using Vector = std::vector<float>;

std::vector<parallel::TreeNode> single_shards(const parallel::ReductionTree& tree,
                                              const std::vector<std::int64_t>& shards) {
  std::vector<parallel::TreeNode> nodes;
  for (const std::int64_t shard : shards) {
    const auto open = tree.open_partials({shard, shard + 1});
    nodes.insert(nodes.end(), open.begin(), open.end());
  }
  return nodes;
}

// The subsets of shards that two groups hold, each folded by itself, then both together: always the whole tree.
TEST(Fold, OfAnyTwoGroupsOfShardsLeadsToTheRoot) {
  for (std::int64_t count = 1; count <= 12; ++count) {
    const parallel::ReductionTree tree(count);
    for (std::uint32_t members = 0; members < 1u << count; ++members) {
      std::vector<std::pair<std::int64_t, parallel::TreeNode>> open;  // by first shard
      std::size_t additions = 0;
      for (const std::uint32_t group : {0u, 1u}) {
        std::vector<std::int64_t> shards;
        for (std::int64_t shard = 0; shard < count; ++shard)
          if ((members >> shard & 1) == group) shards.push_back(shard);
        const parallel::TreeFold folded = fold(tree, single_shards(tree, shards));
        ASSERT_EQ(folded.open.size(), folded.nodes.size());
        ASSERT_EQ(folded.merges.size() + folded.open.size(), shards.size());
        ASSERT_TRUE(std::ranges::is_sorted(folded.open));
        for (std::size_t i = 0; i < folded.open.size(); ++i) {
          const parallel::TreeNode node = folded.nodes[i];
          ASSERT_EQ(node.index << node.level, shards[static_cast<std::size_t>(folded.open[i])]);
          // All shards that the node covers are the group's: no gap within.
          for (std::int64_t shard = node.index << node.level; shard < std::min(count, (node.index + 1) << node.level);
               ++shard)
            ASSERT_TRUE(std::ranges::binary_search(shards, shard)) << count << " shards, members " << members;
          open.emplace_back(node.index << node.level, node);
        }
        additions += folded.merges.size();
      }
      std::ranges::sort(open, {}, &std::pair<std::int64_t, parallel::TreeNode>::first);
      std::vector<parallel::TreeNode> nodes;
      for (const auto& [shard, node] : open) nodes.push_back(node);
      additions += parallel::merges_to_root(tree, nodes).size();
      ASSERT_EQ(additions, static_cast<std::size_t>(count - 1)) << count << " shards, members " << members;
    }
  }
}

TEST(Fold, LeavesGapsOpen) {
  const parallel::ReductionTree tree(6);  // ((0 1) (2 3)) (4 5)
  const parallel::TreeFold folded = fold(tree, single_shards(tree, {0, 1, 3, 4, 5}));
  ASSERT_EQ(folded.merges.size(), 2u);
  EXPECT_EQ(folded.merges[0].into, 0);
  EXPECT_EQ(folded.merges[0].from, 1);
  EXPECT_EQ(folded.merges[1].into, 3);
  EXPECT_EQ(folded.merges[1].from, 4);
  EXPECT_EQ(folded.open, (std::vector<int>{0, 2, 3}));
  EXPECT_EQ(folded.nodes,
            (std::vector<parallel::TreeNode>{{1, 0}, {0, 3}, {2, 1}}));  // 4 and 5 have no right sibling above
  EXPECT_TRUE(fold(tree, {}).open.empty());
}

float on_wire(parallel::Wire wire, float v) {
  if (wire == parallel::Wire::BF16) return static_cast<float>(BFloat16(v));
  if (wire == parallel::Wire::F16) return static_cast<float>(Float16(v));
  return v;
}

float tree_value(const std::vector<Vector>& shards, parallel::Wire wire, std::size_t element, int level,
                 std::size_t index) {
  if (level == 0) return on_wire(wire, shards[index][element]);
  float sum = tree_value(shards, wire, element, level - 1, 2 * index);
  if (((2 * index + 1) << (level - 1)) < shards.size())
    sum = on_wire(wire, sum + tree_value(shards, wire, element, level - 1, 2 * index + 1));
  return sum;
}

std::vector<Vector> random_shards(std::size_t count, std::size_t n) {
  RandomStream random(count, n);
  std::vector<Vector> shards(count, Vector(n));
  for (Vector& shard : shards) {
    for (float& v : shard) v = static_cast<float>(random.normal() * std::exp2(random.uniform(-6, 6)));
  }
  return shards;
}

void check_sum(std::int64_t count, std::int64_t n, parallel::Wire wire, bool into_operands) {
  std::vector<Vector> shards = random_shards(static_cast<std::size_t>(count), static_cast<std::size_t>(n));
  const std::vector<Vector> saved = shards;
  const parallel::ReductionTree tree(count);
  std::vector<std::int64_t> all;
  for (std::int64_t shard = 0; shard < count; ++shard) all.push_back(shard);
  const auto merges = parallel::merges_to_root(tree, single_shards(tree, all));
  std::vector<Vector> results(static_cast<std::size_t>(count), Vector(static_cast<std::size_t>(n)));
  std::vector<const float*> operands;
  std::vector<float*> outs;
  for (std::size_t i = shards.size(); i-- > 0;) outs.push_back(into_operands ? shards[i].data() : results[i].data());
  for (const Vector& shard : shards) operands.push_back(shard.data());
  parallel::tree_sum<float>(operands, merges, n, outs, {.wire = wire, .threads = true});
  for (std::size_t element = 0; std::cmp_less(element, n); ++element) {
    const float expected = tree_value(saved, wire, element, tree.root().level, 0);
    for (const float* out : outs)
      ASSERT_EQ(out[element], expected) << count << " shards, element " << element << " of " << n;
  }
}

TEST(TreeSum, GoesToAllOutsRoundedForTheWire) {
  for (const parallel::Wire wire : {parallel::Wire::Exact, parallel::Wire::BF16, parallel::Wire::F16}) {
    for (const std::int64_t count : {1, 2, 3, 5, 8, 13}) {
      for (const bool into_operands : {false, true}) {
        for (const std::int64_t n : {0, 1, 511, 512, 1100}) check_sum(count, n, wire, into_operands);
      }
    }
    check_sum(3, 70'001, wire, true);
  }
}

// A sum that is not the root's stays f32: what it loses, it loses on its way up the next edge.
TEST(TreeSum, RoundsOperandsButNotAnOpenSum) {
  const float a = 1 + 0x1p-8F, b = 0x1p-7F + 0x1p-12F;  // a is a tie for bf16, which goes down
  const std::array<const float*, 2> operands{&a, &b};
  const std::array<parallel::TreeMerge, 1> merges{{{0, 1}}};
  float sum = 0;
  const std::array<float*, 1> outs{&sum};
  parallel::tree_sum<float>(operands, merges, 1, outs, {.wire = parallel::Wire::BF16, .root = false});
  EXPECT_EQ(sum, 1 + on_wire(parallel::Wire::BF16, b));
  EXPECT_NE(sum, on_wire(parallel::Wire::BF16, sum));
  float joined = a;
  parallel::add_into<float>(1, &b, &joined, parallel::Wire::BF16);
  EXPECT_EQ(joined, sum);
  parallel::tree_sum<float>(operands, merges, 1, outs, {.wire = parallel::Wire::BF16});
  EXPECT_EQ(sum, on_wire(parallel::Wire::BF16, joined));
}

TEST(TreeSum, OfDoublesIsExactOnAnyWire) {
  const double a = 1 + 0x1p-50, b = 0x1p-51;
  const std::array<const double*, 2> operands{&a, &b};
  const std::array<parallel::TreeMerge, 1> merges{{{0, 1}}};
  double sum = 0;
  const std::array<double*, 1> outs{&sum};
  parallel::tree_sum<double>(operands, merges, 1, outs, {.wire = parallel::Wire::BF16});
  EXPECT_EQ(sum, a + b);
}

TEST(Wire, CarriesAll65536Words) {
  std::vector<std::uint16_t> words(65536), back(words.size());
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<std::uint16_t>(i);
  Vector wide(words.size());
  for (const parallel::Wire wire : {parallel::Wire::BF16, parallel::Wire::F16}) {
    widen(std::ssize(words), words.data(), wire, wide.data());
    narrow(std::ssize(words), wide.data(), wire, back.data());
    for (std::size_t i = 0; i < words.size(); ++i) {
      const float expected = wire == parallel::Wire::F16 ? static_cast<float>(std::bit_cast<Float16>(words[i]))
                                                         : static_cast<float>(std::bit_cast<BFloat16>(words[i]));
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(wide[i]));
        ASSERT_TRUE(std::isnan(on_wire(wire, wide[i])));
      } else {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i]), std::bit_cast<std::uint32_t>(expected)) << i;
        ASSERT_EQ(back[i], words[i]);
      }
    }
  }
}

// Also those that have the largest bits of all.
TEST(Wire, WhatIsNotANumberStaysSo) {
  for (const parallel::Wire wire : {parallel::Wire::BF16, parallel::Wire::F16}) {
    Vector values;
    for (const std::uint32_t word : {0x7f800001U, 0x7fc00000U, 0x7fffe000U, 0x7ffff001U, 0x7fffffffU, 0xffffffffU})
      values.push_back(std::bit_cast<float>(word));
    const Vector zeros(values.size());
    parallel::add_into<float>(std::ssize(values), zeros.data(), values.data(), wire);
    for (const float value : values) EXPECT_TRUE(std::isnan(value));
  }
}

TEST(Wire, NarrowsAsTheTypesDo) {
  for (const parallel::Wire wire : {parallel::Wire::BF16, parallel::Wire::F16}) {
    Vector values{0.0F, -0.0F, 65519.9F, 65520.0F, -1e30F, 1e-30F, INFINITY, 0x1p-24F, 0x1.8p-25F, 1 + 0x1p-11F};
    RandomStream random(3, 1);
    for (int i = 0; i < 5000; ++i)
      values.push_back(static_cast<float>(random.normal() * std::exp2(random.uniform(-30, 30))));
    std::vector<std::uint16_t> words(values.size());
    narrow(std::ssize(values), values.data(), wire, words.data());
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(words[i], wire == parallel::Wire::F16 ? Float16(values[i]).bits : BFloat16(values[i]).bits)
          << values[i];
    }
  }
}

}  // namespace
}  // namespace lockstep

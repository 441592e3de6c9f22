// Sums of row gradients: sorting, joining and blocks give what a map from row to sum gives; the exact sum of squares
// does not depend on the order.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "lockstep/core/random.h"
#include "lockstep/parallel/tables/exact_sum.h"
#include "lockstep/parallel/tables/row_block.h"
#include "lockstep/parallel/tables/row_set.h"

namespace lockstep::parallel {
namespace {

using Rows = std::map<std::int64_t, std::vector<double>>;

Rows rows_of(const RowView<double>& set, std::int64_t width) {
  Rows rows;
  EXPECT_TRUE(std::ranges::is_sorted(set.ids));
  for (std::size_t i = 0; i < set.ids.size(); ++i) {
    const double* const row = set.rows + static_cast<std::int64_t>(i) * width;
    rows[set.ids[i]].assign(row, row + width);
  }
  EXPECT_EQ(rows.size(), set.ids.size());
  return rows;
}

// Whole numbers, whose sums are exact.
std::vector<double> random_rows(std::size_t count, std::int64_t width, RandomStream& random) {
  std::vector<double> rows(count * static_cast<std::size_t>(width));
  for (double& v : rows) v = static_cast<double>(random.below(100)) - 50;
  return rows;
}

struct Case {
  std::int64_t end, width;
  std::size_t uses;
};

TEST(RowSets, AreTheSumsOfUses) {
  for (const Case& c : {Case{1, 3, 5}, {7, 1, 0}, {40, 5, 200}, {3000, 16, 900}, {std::int64_t{1} << 40, 4, 300}}) {
    RandomStream random(1, static_cast<std::uint64_t>(c.end));
    std::vector<std::int64_t> ids(c.uses);
    for (std::int64_t& id : ids) id = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(c.end)));
    if (c.uses > 2) ids[2] = ids[0];
    const std::vector<double> gradient = random_rows(c.uses, c.width, random);
    for (const std::int64_t left_out : {std::int64_t{-1}, c.uses > 0 ? ids[0] : 3}) {
      Rows expected;
      for (std::size_t i = 0; i < c.uses; ++i) {
        if (ids[i] == left_out) continue;
        std::vector<double>& sum = expected[ids[i]];
        sum.resize(static_cast<std::size_t>(c.width));
        for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += gradient[i * sum.size() + k];
      }
      IdSort sorter;
      RowSet<double> sums;
      sum_uses(sorter, ids, c.end, left_out, c.width, gradient.data(), sums);
      EXPECT_EQ(rows_of(sums.view(), c.width), expected) << c.end;
    }
  }
}

RowSet<double> random_set(std::int64_t end, std::int64_t width, double part, RandomStream& random) {
  RowSet<double> set;
  for (std::int64_t id = 0; id < end; ++id) {
    if (random.uniform() < part) set.ids.push_back(id);
  }
  const std::vector<double> rows = random_rows(set.ids.size(), width, random);
  set.rows.assign(rows.begin(), rows.end());
  return set;
}

TEST(RowSets, AddUpAsRowsAndAsBlocks) {
  constexpr std::int64_t kRows = 150, kWidth = 3;
  RandomStream random(2, 0);
  for (const double part : {0.0, 0.1, 0.9, 1.0}) {
    const RowSet<double> a = random_set(kRows, kWidth, part, random), b = random_set(kRows, kWidth, 0.5, random);
    Rows expected = rows_of(a.view(), kWidth);
    for (const auto& [id, row] : rows_of(b.view(), kWidth)) {
      const auto [at, is_new] = expected.try_emplace(id, row);
      for (std::size_t k = 0; !is_new && k < row.size(); ++k) at->second[k] += row[k];
    }
    RowSet<double> sum, scratch;
    merge_rows(a.view(), b.view(), kWidth, sum);
    EXPECT_EQ(rows_of(sum.view(), kWidth), expected);
    for (const RowPlacement placement : {RowPlacement::Hash, RowPlacement::Range}) {
      const RowDeal deal(4, placement, kRows);
      Rows found;
      std::int64_t owned = 0;
      for (int owner = 0; owner < deal.owners(); ++owner) {
        const std::int64_t rows = deal.rows_of(owner);
        owned += rows;
        std::vector<AllToAll::Words> blocks(2, AllToAll::Words(block_words<double>(rows, kWidth)));
        for (const RowSet<double>* set : {&a, &b}) {
          BlockWriter<double> writer(blocks[set == &b].data(), rows, kWidth);
          for (std::size_t i = 0; i < set->ids.size(); ++i) {
            const std::int64_t id = set->ids[i];
            if (deal.owner(id) != owner) continue;
            EXPECT_EQ(deal.row(owner, deal.local(id)), id);
            writer.write(deal.local(id), set->rows.data() + static_cast<std::int64_t>(i) * kWidth);
          }
          writer.finish();
        }
        take_sum(blocks[0].data(), blocks[1].data(), deal, owner, kWidth, scratch);
        found.merge(rows_of(scratch.view(), kWidth));
        add_blocks<double>(blocks[0].data(), blocks[1].data(), rows, kWidth, blocks[0].data());
        AllToAll::Words none(block_words<double>(rows, kWidth));
        BlockWriter<double>(none.data(), rows, kWidth).finish();
        RowSet<double> again;
        take_sum(blocks[0].data(), none.data(), deal, owner, kWidth, again);
        EXPECT_EQ(rows_of(again.view(), kWidth), rows_of(scratch.view(), kWidth));
      }
      EXPECT_EQ(owned, kRows);
      EXPECT_EQ(found, expected);
    }
  }
}

TEST(RowSets, OfMinusZeroStayAsTheyAreInABlock) {
  RowSet<float> set;
  set.ids = {1};
  set.rows = {-0.0F, 2};
  AllToAll::Words a(block_words<float>(3, 2)), b(block_words<float>(3, 2));
  BlockWriter<float> first(a.data(), 3, 2), none(b.data(), 3, 2);
  first.write(1, set.rows.data());
  first.finish();
  none.finish();
  RowSet<float> sum;
  add_blocks<float>(a.data(), b.data(), 3, 2, a.data());
  take_sum(a.data(), b.data(), RowDeal(1, RowPlacement::Range, 3), 0, 2, sum);
  ASSERT_EQ(sum.ids.size(), 1U);
  EXPECT_TRUE(std::signbit(sum.rows[0]));
}

TEST(ExactSums, AreRoundedOnceInAnyOrder) {
  RandomStream random(3, 0);
  std::vector<double> numbers{0, std::numeric_limits<double>::denorm_min(), 1e300, 1};
  for (int i = 0; i < 500; ++i) numbers.push_back(std::exp(200 * random.uniform() - 100));
  ExactSum forward, parts[2], small;
  for (const double v : numbers) forward.add(v);
  for (std::size_t i = numbers.size(); i-- > 0;) parts[i % 2].add(numbers[i]);
  for (std::size_t i = 0; i < parts[0].words().size(); ++i) parts[0].words()[i] += parts[1].words()[i];
  EXPECT_EQ(forward.value(), parts[0].value());
  for (const double v : {3.0, 1e-300, 0.25, 5e-324}) small.add(v);
  EXPECT_EQ(small.value(), 3.25);
  EXPECT_EQ(ExactSum().value(), 0);
  small.add(std::numeric_limits<double>::infinity());
  EXPECT_FALSE(std::isfinite(small.value()));
}

}  // namespace
}  // namespace lockstep::parallel

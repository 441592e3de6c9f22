// Copies by maps of axes, axes in another order, joined and cut rows: against plain loops, for elements of every size,
// in values that are large enough for several threads and whole tiles.
#include "lockstep/kernels/generic/index_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "lockstep/kernels/generic/permute.h"
#include "lockstep/kernels/generic/pieces.h"

namespace lockstep::kernels::generic {
namespace {

using Indices = std::vector<std::int64_t>;  // by output index of an axis: the input index, or -1

template <class Element>
std::vector<Element> numbered(std::int64_t n) {
  std::vector<Element> x(static_cast<std::size_t>(n));
  RandomStream random(1, 2);
  for (Element& v : x) v = static_cast<Element>(random.below(1U << 30));
  return x;
}

std::int64_t product(const std::vector<std::int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

// Calls visit(output element, input element or -1).
template <class Visit>
void for_mapped(const std::vector<std::int64_t>& in, const std::vector<Indices>& axes, const Visit& visit) {
  std::int64_t total = 1;
  for (const Indices& axis : axes) total *= static_cast<std::int64_t>(axis.size());
  for (std::int64_t i = 0; i < total; ++i) {
    std::int64_t rest = i, from = 0, stride = 1;
    for (std::size_t d = axes.size(); d-- > 0;) {
      const auto size = static_cast<std::int64_t>(axes[d].size());
      const std::int64_t j = axes[d][static_cast<std::size_t>(rest % size)];
      from = from < 0 || j < 0 ? -1 : from + j * stride;
      rest /= size;
      stride *= in[d];
    }
    visit(static_cast<std::size_t>(i), from);
  }
}

std::vector<IndexMap> maps_of(const std::vector<std::int64_t>& in, const std::vector<Indices>& axes) {
  std::vector<IndexMap> maps;
  for (std::size_t d = 0; d < axes.size(); ++d) {
    maps.push_back(IndexMap::of(in[d], static_cast<std::int64_t>(axes[d].size()),
                                [&](std::int64_t i) { return axes[d][static_cast<std::size_t>(i)]; }));
  }
  return maps;
}

template <class Element>
void expect_copy(const std::vector<std::int64_t>& in, const std::vector<Indices>& axes) {
  const std::vector<Element> x = numbered<Element>(product(in));
  std::vector<Element> want, got;
  constexpr Element kFill = 77;
  for_mapped(in, axes, [&](std::size_t, std::int64_t from) {
    want.push_back(from < 0 ? kFill : x[static_cast<std::size_t>(from)]);
  });
  got.resize(want.size());
  MappedCopy(maps_of(in, axes), sizeof(Element), kFill)(x.data(), got.data());
  EXPECT_EQ(got, want) << "elements of " << sizeof(Element) << " bytes";
}

void expect_copies(const std::vector<std::int64_t>& in, const std::vector<Indices>& axes) {
  expect_copy<std::uint8_t>(in, axes);
  expect_copy<std::uint16_t>(in, axes);
  expect_copy<std::uint32_t>(in, axes);
  expect_copy<std::uint64_t>(in, axes);
}

Indices whole(std::int64_t n) {
  Indices all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Indices drawn(std::int64_t n, std::int64_t out, std::uint64_t key) {
  RandomStream random(key, 3);
  Indices some;
  for (std::int64_t i = 0; i < out; ++i)
    some.push_back(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(n) + 1)) - 1);
  return some;
}

TEST(IndexMap, FindsRuns) {
  const auto map = IndexMap::of(
      5, 9, [](std::int64_t i) { return Indices{-1, -1, 2, 1, 0, 1, 2, 3, -1}[static_cast<std::size_t>(i)]; });
  ASSERT_EQ(map.runs.size(), 4U);
  EXPECT_LT(map.runs[0].from, 0);
  EXPECT_EQ(map.runs[1].step, -1);
  EXPECT_EQ(map.runs[2].length, 3);
  EXPECT_EQ(map.runs[2].step, 1);
  EXPECT_FALSE(map.whole());
  EXPECT_TRUE(IndexMap::of(5, 5, [](std::int64_t i) { return i; }).whole());
  EXPECT_FALSE(IndexMap::of(5, 4, [](std::int64_t i) { return i; }).whole());
  EXPECT_FALSE(IndexMap::of(5, 5, [](std::int64_t i) { return 4 - i; }).whole());
}

TEST(MappedCopy, IsThePlainLoops) {
  expect_copies({7}, {{-1, 3, 4, 5, 6, 6, 6, 0, -1}});
  expect_copies({3, 4}, {{2, 1, 0}, whole(4)});
  expect_copies({3, 4, 5}, {whole(3), {-1, 0, 1, 2, 3, -1}, {4, 2, 0}});
  expect_copies({3, 1, 5}, {whole(3), {0}, {-1, -1, -1}});
  expect_copies({2, 3, 2, 3, 2}, {drawn(2, 5, 1), drawn(3, 4, 2), whole(2), drawn(3, 3, 3), drawn(2, 6, 4)});
  expect_copies({1, 1}, {{0}, {0}});
  expect_copies({4, 0}, {whole(4), {-1, -1}});
  expect_copies({4, 3}, {whole(4), {}});
}

TEST(MappedCopy, OfLargeValues) {
  expect_copies({300000}, {drawn(300000, 260001, 5)});
  Indices shifted = whole(200001);
  shifted.insert(shifted.begin(), -1);
  expect_copies({200001}, {shifted});
  expect_copies({33, 65, 70}, {drawn(33, 40, 6), whole(65), drawn(70, 59, 7)});
  Indices reversed = whole(65);
  std::ranges::reverse(reversed);
  expect_copies({33, 65, 70}, {whole(33), reversed, whole(70)});
}

template <class T>
void expect_sum(const std::vector<std::int64_t>& in, const std::vector<Indices>& axes) {
  std::vector<double> want(static_cast<std::size_t>(product(in)));
  std::vector<T> dy;
  RandomStream random(4, 5);
  for_mapped(in, axes, [&](std::size_t, std::int64_t from) {
    dy.push_back(static_cast<T>(random.uniform(-1, 1)));
    if (from >= 0) want[static_cast<std::size_t>(from)] += static_cast<double>(dy.back());
  });
  std::vector<T> got(want.size(), T{99});
  MappedSum(maps_of(in, axes))(dy.data(), got.data());
  for (std::size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(static_cast<double>(got[i]), want[i], 64 * static_cast<double>(std::numeric_limits<T>::epsilon())) << i;
}

TEST(MappedSum, AddsWhatACopyRead) {
  const std::vector<std::pair<std::vector<std::int64_t>, std::vector<Indices>>> cases{
      {{4}, {{1, 0, 1, 2, 3, 3, 3}}},
      {{4, 3}, {{3, 0, 1, 2, 3, 0}, {2, 0, 1, 2, 0}}},
      {{2, 5, 600}, {whole(2), {0, 0, 0, 1, 2, 4}, whole(600)}},
      {{3, 4, 5}, {drawn(3, 7, 1), drawn(4, 6, 2), drawn(5, 9, 3)}},
      {{40, 30, 50}, {whole(40), drawn(30, 34, 2), drawn(50, 57, 3)}},
      {{70000}, {drawn(70000, 80000, 4)}},
      {{3, 0}, {{0, 2}, {}}},
  };
  for (const auto& [in, axes] : cases) {
    expect_sum<double>(in, axes);
    expect_sum<float>(in, axes);
  }
}

template <class Element>
void expect_permuted(const Shape& shape, const std::vector<int>& order) {
  const std::vector<Element> x = numbered<Element>(shape.elements());
  std::vector<std::int64_t> strides(order.size(), 1);
  for (int d = shape.rank() - 1; d > 0; --d)
    strides[static_cast<std::size_t>(d - 1)] = strides[static_cast<std::size_t>(d)] * shape[d];
  std::vector<Element> want;
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    std::int64_t rest = i, from = 0;
    for (std::size_t k = order.size(); k-- > 0;) {
      from += rest % shape[order[k]] * strides[static_cast<std::size_t>(order[k])];
      rest /= shape[order[k]];
    }
    want.push_back(x[static_cast<std::size_t>(from)]);
  }
  std::vector<Element> got(want.size());
  PermutedCopy(shape, order, sizeof(Element))(x.data(), got.data());
  EXPECT_EQ(got, want) << shape.str() << ", elements of " << sizeof(Element) << " bytes";
}

TEST(PermutedCopy, IsThePlainLoops) {
  const std::vector<std::pair<Shape, std::vector<int>>> cases{
      {{5, 7}, {1, 0}},
      {{67, 131}, {1, 0}},
      {{1, 9, 1, 4}, {2, 3, 1, 0}},
      {{3, 4, 5, 6}, {3, 2, 1, 0}},
      {{3, 17, 33, 2}, {0, 2, 3, 1}},
      {{2, 3, 40, 50}, {0, 2, 3, 1}},              // channels last
      {{2, 40, 50, 3}, {0, 3, 1, 2}},              // and back
      {{2, 3, 2, 2, 19, 37}, {0, 1, 4, 2, 5, 3}},  // pixels out of channels
      {{2, 3, 19, 2, 37, 2}, {0, 1, 3, 5, 2, 4}},
      {{4, 33, 3, 65}, {0, 2, 1, 3}},
      {{2, 2, 2, 2, 2, 2, 2, 2}, {7, 0, 6, 1, 5, 2, 4, 3}},
      {{3, 2000}, {1, 0}},
      {{2000, 3}, {1, 0}},
      {{0, 3}, {1, 0}},
      {{4, 5}, {0, 1}},
      {{}, {}},
  };
  for (const auto& [shape, order] : cases) {
    expect_permuted<std::uint8_t>(shape, order);
    expect_permuted<std::uint16_t>(shape, order);
    expect_permuted<std::uint32_t>(shape, order);
    expect_permuted<std::uint64_t>(shape, order);
  }
}

TEST(Pieces, AreJoinedAndCut) {
  for (const std::vector<std::int64_t>& widths :
       {std::vector<std::int64_t>{5}, {3, 0, 8}, {0, 4, 0, 0}, {40000, 1, 30000}}) {
    for (const std::int64_t rows : {0, 1, 3, 257}) {
      const std::int64_t width = product({1, std::accumulate(widths.begin(), widths.end(), std::int64_t{0})});
      const std::vector<std::uint8_t> all = numbered<std::uint8_t>(rows * width);
      std::vector<std::vector<std::uint8_t>> parts;
      for (const std::int64_t w : widths) parts.emplace_back(static_cast<std::size_t>(rows * w));
      std::vector<void*> to;
      for (auto& part : parts) to.push_back(part.data());
      const Pieces pieces(rows, widths);
      pieces.cut(all.data(), to.data());
      std::size_t at = 0;
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::size_t k = 0; k < widths.size(); ++k) {
          const auto w = static_cast<std::size_t>(widths[k]);
          ASSERT_TRUE(std::equal(all.begin() + static_cast<std::ptrdiff_t>(at),
                                 all.begin() + static_cast<std::ptrdiff_t>(at + w),
                                 parts[k].begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(r) * w)))
              << "row " << r << ", piece " << k;
          at += w;
        }
      }
      std::vector<std::uint8_t> again(all.size());
      pieces.join(to.data(), again.data());
      EXPECT_EQ(again, all);
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels::generic

#include "lockstep/graph/layout.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace lockstep {
namespace {

// Where an element lies, by the definition of a layout and not by tables: digits of each index go to its blocks from
// the innermost, what is left to the stride.
std::int64_t offset_of(const Shape& shape, const Layout& layout, std::vector<std::int64_t> index) {
  std::int64_t offset = 0, stride = 1;
  if (layout.plain()) {
    for (int d = shape.rank() - 1; d >= 0; --d) {
      offset += index[static_cast<std::size_t>(d)] * stride;
      stride *= shape[d];
    }
    return offset;
  }
  for (std::size_t b = layout.blocks.size(); b-- > 0;) {
    std::int64_t& i = index[static_cast<std::size_t>(layout.blocks[b].dim)];
    offset += i % layout.blocks[b].size * stride;
    i /= layout.blocks[b].size;
    stride *= layout.blocks[b].size;
  }
  for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * layout.strides[d];
  return offset;
}

template <class F>
void for_each_index(const Shape& shape, F f) {
  for (std::int64_t flat = 0; flat < shape.elements(); ++flat) {
    std::vector<std::int64_t> index(static_cast<std::size_t>(shape.rank()));
    std::int64_t rest = flat;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      index[static_cast<std::size_t>(d)] = rest % shape[d];
      rest /= shape[d];
    }
    f(flat, index);
  }
}

struct Case {
  const char* name;
  Shape shape;
  Layout layout;
  std::string text;
};

std::vector<Case> cases() {
  const Shape filter{18, 5, 3, 2}, large{1, 37, 41, 4, 10};
  return {
      {"nChw16c without padding", {2, 32, 3, 4}, Layout::channels_blocked({2, 32, 3, 4}, 16), "aBcd16b"},
      {"nChw16c with padding", {2, 21, 3, 4}, Layout::channels_blocked({2, 21, 3, 4}, 16), "aBcd16b"},
      {"nChw8c of one pixel", {3, 3, 1, 1}, Layout::channels_blocked({3, 3, 1, 1}, 8), "aBcd8b"},
      {"blocked matrix", {5, 7}, Layout::channels_blocked({5, 7}, 4), "aB4b"},
      {"OIhw16i16o",
       filter,
       {.padded = {32, 16, 3, 2}, .strides = {1536, 1536, 512, 256}, .blocks = {{1, 16}, {0, 16}}},
       "ABcd16b16a"},
      {"OIhw4i8o2i",
       filter,
       {.padded = {24, 8, 3, 2}, .strides = {384, 384, 128, 64}, .blocks = {{1, 4}, {0, 8}, {1, 2}}},
       "ABcd4b8a2b"},
      {"nhwc", {2, 5, 3, 4}, {.padded = {2, 5, 3, 4}, .strides = {60, 1, 20, 5}, .blocks = {}}, "acdb"},
      {"plain", {3, 4, 5}, {}, "plain"},
      // On several threads:
      {"nCdhw16c with padding", large, Layout::channels_blocked(large, 16), "aBcde16b"},
      {"ndhwc", large, {.padded = large.dims(), .strides = {60680, 1, 1480, 370, 37}, .blocks = {}}, "acdeb"},
      {"large and plain", large, {}, "plain"},
      {"a matrix, transposed", {16, 6000}, {.padded = {16, 6000}, .strides = {1, 16}, .blocks = {}}, "ba"},
      {"its rows in blocks", {16, 6000}, {.padded = {16, 6000}, .strides = {8, 16}, .blocks = {{0, 8}}}, "bA8a"},
  };
}

TEST(Layout, OffsetsAreThoseOfItsDefinition) {
  omp_set_num_threads(3);
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    std::vector<std::int32_t> logical(static_cast<std::size_t>(c.shape.elements()));
    std::iota(logical.begin(), logical.end(), 1);
    std::vector<std::int32_t> stored(static_cast<std::size_t>(c.layout.storage_elements(c.shape)), -1);
    reorder(c.shape, DType::I32, {}, logical.data(), c.layout, stored.data());
    std::vector<std::int32_t> want(stored.size(), 0);  // padding is zero
    for_each_index(c.shape, [&](std::int64_t flat, const std::vector<std::int64_t>& index) {
      want.at(static_cast<std::size_t>(offset_of(c.shape, c.layout, index))) = static_cast<std::int32_t>(flat + 1);
    });
    EXPECT_EQ(stored, want);
  }
}

template <class T>
void expect_round_trips(DType dtype) {
  for (const Case& from : cases()) {
    for (const Case& to : cases()) {
      if (from.shape != to.shape) continue;
      std::vector<T> logical(static_cast<std::size_t>(from.shape.elements())), back(logical.size());
      std::iota(logical.begin(), logical.end(), T(1));
      std::vector<T> first(static_cast<std::size_t>(from.layout.storage_elements(from.shape)), T(7));
      std::vector<T> second(static_cast<std::size_t>(to.layout.storage_elements(to.shape)), T(7));
      reorder(from.shape, dtype, {}, logical.data(), from.layout, first.data());
      reorder(from.shape, dtype, from.layout, first.data(), to.layout, second.data());
      reorder(to.shape, dtype, to.layout, second.data(), {}, back.data());
      EXPECT_EQ(back, logical) << from.name << " to " << to.name;
      EXPECT_EQ(std::count(second.begin(), second.end(), T(0)) - std::count(logical.begin(), logical.end(), T(0)),
                static_cast<std::int64_t>(second.size() - logical.size()))
          << "padding of " << to.name;
    }
  }
}

TEST(Layout, ReordersRoundTripInEveryType) {
  omp_set_num_threads(3);
  expect_round_trips<float>(DType::F32);
  expect_round_trips<double>(DType::F64);
  expect_round_trips<std::int32_t>(DType::I32);
  expect_round_trips<std::int64_t>(DType::I64);
  expect_round_trips<std::uint8_t>(DType::U8);
}

TEST(Layout, ReordersScalarsAndNothing) {
  const double one = 1.5;
  double copy = 0;
  reorder({}, DType::F64, {}, &one, {}, &copy);
  EXPECT_EQ(copy, 1.5);
  std::vector<float> nothing(1, 3.0f);
  const Shape empty{0, 5, 2, 2};
  reorder(empty, DType::F32, {}, nothing.data(), Layout::channels_blocked(empty, 8), nothing.data());
  EXPECT_EQ(nothing[0], 3.0f);
}

TEST(Layout, PrintsAsDimensionsByFallingStrideAndBlocks) {
  for (const Case& c : cases()) EXPECT_EQ(c.layout.str(), c.text) << c.name;
}

TEST(Layout, KnowsItsPadding) {
  const Shape x{2, 21, 3, 4};
  EXPECT_EQ(Layout{}.storage_elements(x), 504);
  EXPECT_FALSE(Layout{}.has_padding(x));
  EXPECT_EQ(Layout::channels_blocked(x, 16).storage_elements(x), 2 * 32 * 3 * 4);
  EXPECT_TRUE(Layout::channels_blocked(x, 16).has_padding(x));
  EXPECT_FALSE(Layout::channels_blocked({2, 32, 3, 4}, 16).has_padding({2, 32, 3, 4}));
}

TEST(Layout, ChannelBlockIsOfDenseRowMajorValuesOnly) {
  const Shape x{2, 21, 3, 4};
  EXPECT_EQ(Layout{}.channel_block(x), 1);
  EXPECT_EQ(Layout::channels_blocked(x, 16).channel_block(x), 16);
  EXPECT_EQ(Layout::channels_blocked(x, 8).channel_block(x), 8);
  EXPECT_EQ(Layout::channels_blocked(x, 1).channel_block(x), 1);
  Layout strided = Layout::channels_blocked(x, 8);
  strided.strides[0] *= 2;
  EXPECT_EQ(strided.channel_block(x), 0);
  for (const Case& c : cases()) {
    const bool dense = c.layout.plain() || c.text.starts_with("aB");
    EXPECT_EQ(c.layout.channel_block(c.shape) != 0, dense) << c.name;
  }
}

}  // namespace
}  // namespace lockstep

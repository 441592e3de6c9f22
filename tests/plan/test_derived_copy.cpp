// Derived copies against lockstep::Reorder, bit by bit, written in pieces in any order.
#include "lockstep/plan/derived_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "lockstep/core/random.h"
#include "lockstep/core/tensor.h"
#include "tests/plan/support.h"

namespace lockstep {
namespace {

using Blocks = std::vector<Layout::Block>;

// Outer dimensions in `order` (outermost first), each padded to its blocks.
Layout blocked(const Shape& shape, Blocks blocks, const std::vector<int>& order) {
  Layout layout;
  layout.padded = shape.dims();
  layout.strides.resize(layout.padded.size());
  std::vector<std::int64_t> size(layout.padded.size(), 1);
  std::int64_t stride = 1;
  for (const Layout::Block& b : blocks) {
    size[static_cast<std::size_t>(b.dim)] *= b.size;
    stride *= b.size;
  }
  for (auto d = order.rbegin(); d != order.rend(); ++d) {
    const auto k = static_cast<std::size_t>(*d);
    const std::int64_t outer = (layout.padded[k] + size[k] - 1) / size[k];
    layout.padded[k] = outer * size[k];
    layout.strides[k] = stride;
    stride *= outer;
  }
  layout.blocks = std::move(blocks);
  return layout;
}

// Random values in the layout, zeros in its padding; among them infinities, NaNs and what rounds to the next exponent.
template <class T>
std::vector<T> stored(const Shape& shape, const Layout& layout, std::uint64_t seed) {
  RandomStream random(seed, 0);
  std::vector<T> logical(static_cast<std::size_t>(shape.elements()));
  const T special[] = {std::numeric_limits<T>::infinity(), std::numeric_limits<T>::quiet_NaN(), T(1.998), -T(0)};
  for (T& v : logical) v = random.below(16) == 0 ? special[random.below(4)] : static_cast<T>(random.normal());
  std::vector<T> result(static_cast<std::size_t>(layout.storage_elements(shape)));
  if (!logical.empty()) reorder(shape, dtype_of<T>, {}, logical.data(), layout, result.data());
  return result;
}

// Cuts [0, n) at random places and shuffles the pieces.
std::vector<Range> random_pieces(std::int64_t n, RandomStream& random) {
  std::vector<Range> pieces;
  for (std::int64_t begin = 0; begin < n;) {
    const std::int64_t end = std::min(n, begin + 1 + static_cast<std::int64_t>(random.below(700)));
    pieces.push_back({begin, end});
    begin = end;
  }
  for (std::size_t i = pieces.size(); i > 1; --i) std::swap(pieces[i - 1], pieces[random.below(i)]);
  return pieces;
}

template <class T>
void expect_copies(const Shape& shape, const Layout& from, const Layout& to, DType dtype) {
  SCOPED_TRACE(formatted("{}: {} -> {} {}", shape.str(), from.str(), name_of(dtype), to.str()));
  const std::vector<T> source = stored<T>(shape, from, 7);
  const std::size_t bytes = static_cast<std::size_t>(to.storage_elements(shape)) * size_of(dtype);
  std::vector<std::byte> expected(bytes), whole(bytes), pieces(bytes);
  Reorder(shape, dtype_of<T>, from, dtype, to)(source.data(), expected.data());
  const plan::DerivedCopy copy(shape, {dtype_of<T>, from}, {dtype, to});
  EXPECT_EQ(copy.elements(), from.storage_elements(shape));
  copy.write({0, copy.elements()}, source.data(), whole.data());
  EXPECT_TRUE(whole == expected);
  RandomStream random(1, static_cast<std::uint64_t>(copy.elements()));
  for (const Range& piece : random_pieces(copy.elements(), random)) copy.write(piece, source.data(), pieces.data());
  EXPECT_TRUE(pieces == expected) << "in pieces";
}

void expect_copies_of_all_types(const Shape& shape, const Layout& from, const Layout& to) {
  expect_copies<float>(shape, from, to, DType::F32);
  expect_copies<float>(shape, from, to, DType::BF16);
  expect_copies<double>(shape, from, to, DType::F64);
}

void expect_every_pair(const Shape& shape, const std::vector<Layout>& layouts) {
  for (const Layout& from : layouts) {
    for (const Layout& to : layouts) expect_copies_of_all_types(shape, from, to);
  }
}

TEST(DerivedCopy, EqualsAReorderOfConvolutionWeights) {
  for (const Shape& shape : {Shape{32, 48, 3, 3}, Shape{64, 16, 1, 1}, Shape{17, 5, 3, 2}, Shape{16, 3, 7, 7},
                             Shape{40, 24, 5, 1}, Shape{1, 1, 1, 1}}) {
    const auto layout = [&](Blocks blocks, const std::vector<int>& order = {0, 1, 2, 3}) {
      return blocked(shape, std::move(blocks), order);
    };
    expect_every_pair(shape, {Layout{}, layout({{1, 16}, {0, 16}}), layout({{0, 16}, {1, 16}}),
                              layout({{1, 8}, {0, 16}, {1, 2}}), layout({{0, 8}, {1, 16}, {0, 2}}), layout({{0, 16}}),
                              layout({{0, 16}}, {0, 2, 3, 1}), layout({{1, 8}, {0, 8}}), layout({{0, 8}, {1, 8}}),
                              layout({{1, 16}, {0, 16}}, {1, 0, 2, 3}), layout({}, {2, 3, 1, 0})});
  }
}

TEST(DerivedCopy, EqualsAReorderOfLinearWeights) {
  for (const Shape& shape : {Shape{10, 84}, Shape{48, 200}, Shape{6, 2048}, Shape{100, 31}}) {
    const auto layout = [&](Blocks blocks, const std::vector<int>& order = {0, 1}) {
      return blocked(shape, std::move(blocks), order);
    };
    expect_every_pair(
        shape, {Layout{}, layout({}, {1, 0}), layout({{0, 64}}), layout({{1, 16}, {0, 64}}),
                layout({{1, 8}, {0, 64}, {1, 2}}), layout({{1, 16}, {0, 16}}, {1, 0}), layout({{1, 64}, {0, 48}})});
  }
}

TEST(DerivedCopy, EqualsAReorderOfOtherRanksAndSizes) {
  expect_every_pair({}, {Layout{}});
  expect_every_pair({0, 3}, {Layout{}, blocked({0, 3}, {{1, 16}}, {0, 1})});
  expect_every_pair({1000}, {Layout{}, blocked({1000}, {{0, 16}}, {0})});
  const Shape cube{6, 10, 3, 4, 5};
  expect_every_pair(cube,
                    {Layout{}, Layout::channels_blocked(cube, 8), blocked(cube, {{0, 4}, {1, 4}}, {4, 3, 2, 1, 0})});
}

TEST(DerivedCopy, EqualsAReorderOfRandomLayouts) {
  RandomStream random(3, 3);
  const auto random_layout = [&](const Shape& shape) {
    Blocks blocks;
    for (std::uint64_t left = random.below(4); left > 0; --left) {
      const int dim = static_cast<int>(random.below(static_cast<std::uint64_t>(shape.rank())));
      blocks.push_back({dim, std::int64_t{1} << (1 + random.below(4))});
    }
    std::vector<int> order(static_cast<std::size_t>(shape.rank()));
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    return blocked(shape, std::move(blocks), order);
  };
  for (int i = 0; i < 150; ++i) {
    std::vector<std::int64_t> dims(1 + random.below(4));
    for (std::int64_t& d : dims) d = 1 + static_cast<std::int64_t>(random.below(20));
    const Shape shape(dims);
    expect_copies_of_all_types(shape, random_layout(shape), random_layout(shape));
  }
}

// The copies for oneDNN's convolutions are cut into tiles of whole blocks, so that none is written element by element.
TEST(DerivedCopy, CutsConvolutionWeightsIntoBlocks) {
  const Shape shape{64, 32, 3, 3};
  const Layout from = blocked(shape, {{1, 16}, {0, 16}}, {0, 1, 2, 3});
  const auto tile = [&](DType dtype, Blocks blocks, const std::vector<int>& order = {0, 1, 2, 3}) {
    const Layout to = blocked(shape, std::move(blocks), order);
    return plan::DerivedCopy(shape, {DType::F32, from}, {dtype, to}).tile();
  };
  EXPECT_EQ(tile(DType::F32, {{0, 16}, {1, 16}}), 256);
  EXPECT_EQ(tile(DType::F32, {{0, 16}, {1, 16}}, {1, 0, 2, 3}), 256);
  EXPECT_EQ(tile(DType::BF16, {{1, 8}, {0, 16}, {1, 2}}), 256);
  EXPECT_EQ(tile(DType::BF16, {{0, 8}, {1, 16}, {0, 2}}), 256);
  EXPECT_EQ(tile(DType::BF16, {{1, 16}, {0, 16}}), 64 * 32 * 9) << "only the type differs";
}

TEST(DerivedCopy, RefusesOtherConversions) {
  expect_error([] { plan::DerivedCopy({3}, {DType::F64, {}}, {DType::F32, {}}); }, "no conversion from f64 to f32");
}

}  // namespace
}  // namespace lockstep

#include "lockstep/plan/derived_copy.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "lockstep/core/bfloat16.h"
#include "lockstep/core/error.h"
#include "lockstep/plan/tiles.h"

namespace lockstep::plan {
namespace {

constexpr std::int64_t kLargestTile = 1024;  // elements: tile, table and result fit into the first-level cache
constexpr std::int64_t kShortestRun = 8;     // of equal order for which a separate copy pays
constexpr int kMaxRank = 8;

template <class From, class To>
void convert(std::int64_t n, const From* source, To* result) {
  if constexpr (std::is_same_v<From, To>) {
    std::memcpy(result, source, static_cast<std::size_t>(n) * sizeof(To));
  } else {
    round_to_bf16(n, source, &result->bits);
  }
}

}  // namespace

// A walk over the tiles in the order of the source.
struct DerivedCopy::Cursor {
  const DerivedCopy& map;
  std::array<std::int64_t, kMaxRank> index{};  // of the tile's first element

  Cursor(const DerivedCopy& m, std::int64_t tile) : map(m) {
    for (std::size_t a = map.inner_axes_; a < map.axes_.size(); ++a) {
      const Axis& axis = map.axes_[a];
      index[static_cast<std::size_t>(axis.dim)] += tile % axis.size * axis.step;
      tile /= axis.size;
    }
  }
  void next() {
    for (std::size_t a = map.inner_axes_; a < map.axes_.size(); ++a) {
      const Axis& axis = map.axes_[a];
      std::int64_t& i = index[static_cast<std::size_t>(axis.dim)];
      i += axis.step;
      if (i / axis.step % axis.size != 0) return;
      i -= axis.size * axis.step;
    }
  }
  // Whether the copy, which may be padded less, has room for the whole tile.
  bool fits() const {
    for (std::size_t d = 0; d < map.extents_.size(); ++d) {
      if (index[d] + map.extents_[d] > static_cast<std::int64_t>(map.offsets_[d].size())) return false;
    }
    return true;
  }
  std::int64_t offset() const {
    std::int64_t sum = 0;
    for (std::size_t d = 0; d < map.extents_.size(); ++d) sum += map.offsets_[d][static_cast<std::size_t>(index[d])];
    return sum;
  }
  // The offset of element k of the tile; -1 where the copy has no room for it.
  std::int64_t offset(std::int64_t k) const {
    std::array<std::int64_t, kMaxRank> at = index;
    for (std::size_t a = 0; a < map.inner_axes_; ++a) {
      const Axis& axis = map.axes_[a];
      at[static_cast<std::size_t>(axis.dim)] += k % axis.size * axis.step;
      k /= axis.size;
    }
    std::int64_t sum = 0;
    for (std::size_t d = 0; d < map.extents_.size(); ++d) {
      if (at[d] >= static_cast<std::int64_t>(map.offsets_[d].size())) return -1;
      sum += map.offsets_[d][static_cast<std::size_t>(at[d])];
    }
    return sum;
  }
};

std::vector<DerivedCopy::Axis> DerivedCopy::axes(const Shape& shape, const Layout& layout) {
  std::vector<Axis> result;
  std::vector<std::int64_t> steps(static_cast<std::size_t>(shape.rank()), 1);
  std::int64_t stride = 1;
  for (std::size_t b = layout.blocks.size(); b-- > 0;) {
    const Layout::Block& block = layout.blocks[b];
    std::int64_t& step = steps[static_cast<std::size_t>(block.dim)];
    result.push_back({block.dim, block.size, step, stride});
    step *= block.size;
    stride *= block.size;
  }
  const auto blocks = static_cast<std::ptrdiff_t>(result.size());
  for (int d = shape.rank() - 1; d >= 0; --d) {
    const auto k = static_cast<std::size_t>(d);
    const std::int64_t size = (layout.plain() ? shape[d] : layout.padded[k]) / steps[k];
    result.push_back({d, size, steps[k], layout.plain() ? stride : layout.strides[k]});
    stride *= size;
  }
  std::erase_if(result, [](const Axis& a) { return a.size == 1; });
  const auto first_outer = std::min(blocks, static_cast<std::ptrdiff_t>(result.size()));
  std::stable_sort(result.begin() + first_outer, result.end(),
                   [](const Axis& a, const Axis& b) { return a.stride < b.stride; });
  return result;
}

DerivedCopy::DerivedCopy(const Shape& shape, const Form& from, const Form& to) : from_(from.dtype), to_(to.dtype) {
  check((from_ == to_ && from_ != DType::BF16) || (from_ == DType::F32 && to_ == DType::BF16), "derived copy",
        "no conversion from {} to {}", name_of(from_), name_of(to_));
  check(shape.rank() <= kMaxRank, "derived copy", "shape {} has more than {} dimensions", shape.str(), kMaxRank);
  elements_ = from.layout.storage_elements(shape);
  if (elements_ == 0) return;
  axes_ = axes(shape, from.layout);
  std::int64_t stride = 1;
  for (const Axis& a : axes_) {
    check(a.stride == stride, "derived copy", "layout {} of shape {} has gaps", from.layout.str(), shape.str());
    stride *= a.size;
  }
  for (int d = 0; d < shape.rank(); ++d) {
    const auto k = static_cast<std::size_t>(d);
    offsets_.emplace_back(static_cast<std::size_t>(to.layout.plain() ? shape[d] : to.layout.padded[k]));
  }
  for (const Axis& a : axes(shape, to.layout)) {
    std::vector<std::int64_t>& offsets = offsets_[static_cast<std::size_t>(a.dim)];
    for (std::size_t i = 0; i < offsets.size(); ++i)
      offsets[i] += static_cast<std::int64_t>(i) / a.step % a.size * a.stride;
  }
  choose_tile();
}

// Whether neighbours along this axis have the same distance in the copy as in the source.
bool DerivedCopy::lies_alike(const Axis& axis) const {
  const std::vector<std::int64_t>& offsets = offsets_[static_cast<std::size_t>(axis.dim)];
  for (std::int64_t i = 0; i < axis.size; ++i) {
    const auto at = static_cast<std::size_t>(i * axis.step);
    if (at >= offsets.size() || offsets[at] != i * axis.stride) return false;
  }
  return true;
}

// Splits axis `a` into two, the inner one with at most `limit` elements; does nothing if no divisor fits.
void DerivedCopy::split(std::size_t a, std::int64_t limit) {
  const Axis axis = axes_[a];
  for (std::int64_t size = std::min(limit, axis.size / 2); size > 1; --size) {
    if (axis.size % size != 0 || !additive(axis.dim, axis.step * size)) continue;
    axes_[a].size = size;
    axes_.insert(axes_.begin() + static_cast<std::ptrdiff_t>(a) + 1,
                 {axis.dim, axis.size / size, axis.step * size, axis.stride * size});
    return;
  }
}

// Whether the copy has room for tiles of this extent, and the order within a tile is the same for every tile.
bool DerivedCopy::additive(int dim, std::int64_t extent) const {
  const std::vector<std::int64_t>& offsets = offsets_[static_cast<std::size_t>(dim)];
  const auto e = static_cast<std::size_t>(extent);
  if (e > offsets.size()) return false;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i] != offsets[i / e * e] + offsets[i % e]) return false;
  }
  return true;
}

// A tile consists of the innermost axes of the source. In order of preference these are: two axes whose pattern has a
// fast path; all axes that have the same order in copy and source; as many axes as a table can describe.
void DerivedCopy::choose_tile() {
  std::vector<std::int64_t> extents(offsets_.size(), 1);
  extents_ = extents;
  bool same = true;
  std::int64_t tile = 1;
  const auto take = [&](std::size_t axes, Pattern pattern) {
    inner_axes_ = axes;
    tile_ = tile;
    extents_ = extents;
    pattern_ = pattern;
  };
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    same = same && lies_alike(axes_[a]);
    if (!same && pattern_ == Pattern::Same && tile_ >= kShortestRun) return;
    if (!same && tile * axes_[a].size > kLargestTile) split(a, kLargestTile / tile);
    const Axis& axis = axes_[a];
    tile *= axis.size;
    extents[static_cast<std::size_t>(axis.dim)] *= axis.size;
    if (!same && tile > kLargestTile) return;
    bool whole = true;
    for (std::size_t d = 0; d < offsets_.size(); ++d) whole = whole && additive(static_cast<int>(d), extents[d]);
    if (!whole) continue;
    take(a + 1, same ? Pattern::Same : Pattern::Any);
    if (same) continue;
    inner_ = inner_offsets(tile);
    if (a == 1) {
      columns_ = axes_[0].size;
      rows_ = axes_[1].size;
      pattern_ = pattern_of(inner_);
      if (pattern_ != Pattern::Any) return;
    }
  }
}

std::vector<std::int64_t> DerivedCopy::inner_offsets(std::int64_t tile) const {
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(tile));
  const Cursor origin(*this, 0);
  for (std::int64_t k = 0; k < tile; ++k) offsets[static_cast<std::size_t>(k)] = origin.offset(k);
  return offsets;
}

DerivedCopy::Pattern DerivedCopy::pattern_of(const std::vector<std::int64_t>& inner) const {
  const std::int64_t rows = rows_, columns = columns_;
  const auto is = [&](auto index) {
    for (std::int64_t k = 0; k < rows * columns; ++k) {
      if (inner[static_cast<std::size_t>(k)] != index(k / columns, k % columns)) return false;
    }
    return true;
  };
  if (from_ != DType::F32 || rows % 4 != 0 || columns % 4 != 0) return Pattern::Any;
  if (is([&](std::int64_t r, std::int64_t c) { return c * rows + r; })) return Pattern::Transposed;
  if (to_ != DType::BF16 || columns % 8 != 0) return Pattern::Any;
  if (is([&](std::int64_t r, std::int64_t c) { return r / 2 * 2 * columns + 2 * c + r % 2; })) return Pattern::Pairs;
  if (is([&](std::int64_t r, std::int64_t c) { return c / 2 * 2 * rows + 2 * r + c % 2; }))
    return Pattern::TransposedPairs;
  return Pattern::Any;
}

template <class From, class To>
void DerivedCopy::write_tile(const From* source, To* copy) const {
  for (std::size_t k = 0; k < inner_.size(); ++k) copy[inner_[k]] = static_cast<To>(source[k]);
}

template <>
void DerivedCopy::write_tile(const float* source, float* copy) const {
  if (pattern_ == Pattern::Transposed) return transpose(rows_, columns_, source, copy);
  for (std::size_t k = 0; k < inner_.size(); ++k) copy[inner_[k]] = source[k];
}

template <>
void DerivedCopy::write_tile(const float* source, BFloat16* copy) const {
  alignas(64) float turned[kLargestTile];
  alignas(64) std::uint16_t rounded[kLargestTile];
  std::uint16_t* to = &copy->bits;
  switch (pattern_) {
    case Pattern::Transposed:
      transpose(rows_, columns_, source, turned);
      return round_to_bf16(tile_, turned, to);
    case Pattern::TransposedPairs:
      round_to_bf16(tile_, source, rounded);
      return transpose(rows_, columns_ / 2, rounded, to);
    case Pattern::Pairs:
      round_to_bf16(tile_, source, rounded);
      return interleave_rows(rows_, columns_, rounded, to);
    case Pattern::Same:
    case Pattern::Any:
      for (std::size_t k = 0; k < inner_.size(); ++k) copy[inner_[k]] = static_cast<BFloat16>(source[k]);
  }
}

template <class From, class To>
void DerivedCopy::write_as(Range range, const From* source, To* copy) const {
  std::int64_t tile = range.begin / tile_;
  for (Cursor cursor(*this, tile); tile * tile_ < range.end; cursor.next(), ++tile) {
    const std::int64_t start = tile * tile_;
    const Range part{std::max(range.begin - start, std::int64_t{0}), std::min(range.end - start, tile_)};
    const From* from = source + start;
    if (!cursor.fits()) {
      for (std::int64_t k = part.begin; k < part.end; ++k) {
        const std::int64_t at = cursor.offset(k);
        if (at >= 0) copy[at] = static_cast<To>(from[k]);
      }
      continue;
    }
    To* to = copy + cursor.offset();
    if (pattern_ == Pattern::Same) {
      convert(part.size(), from + part.begin, to + part.begin);
    } else if (part.size() == tile_) {
      write_tile(from, to);
    } else {
      for (std::int64_t k = part.begin; k < part.end; ++k)
        to[inner_[static_cast<std::size_t>(k)]] = static_cast<To>(from[k]);
    }
  }
}

void DerivedCopy::write(Range range, const void* source, void* copy) const {
  if (range.size() <= 0) return;
  if (to_ == DType::BF16) return write_as(range, static_cast<const float*>(source), static_cast<BFloat16*>(copy));
  if (from_ == DType::F32) return write_as(range, static_cast<const float*>(source), static_cast<float*>(copy));
  return write_as(range, static_cast<const std::uint64_t*>(source), static_cast<std::uint64_t*>(copy));
}

}  // namespace lockstep::plan

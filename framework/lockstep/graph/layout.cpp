#include "lockstep/graph/layout.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "lockstep/core/error.h"
#include "lockstep/core/parallel_for.h"

namespace lockstep {
namespace {

constexpr int kMaxRank = 8;

using Offsets = std::vector<std::vector<std::int64_t>>;

// The dimension whose neighbours are neighbours in memory, else the last one.
std::size_t contiguous(const Offsets& offsets) {
  for (std::size_t d = offsets.size(); d-- > 0;)
    if (offsets[d].size() > 1 && offsets[d][1] == 1) return d;
  return offsets.size() - 1;
}

// A copy in tiles: some indices of the dimension that is contiguous in the destination, by some of the one that is
// contiguous in the source, so that few cache lines are touched twice. Where both are one dimension, tiles are long.
class Tiles {
 public:
  Tiles(const Shape& shape, const Offsets& in, const Offsets& out)
      : in_(in), out_(out), along_(contiguous(out)), across_(contiguous(in)) {
    if (across_ == along_) width_ = kLong;
    for (std::size_t d = 0; d < in.size(); ++d) {
      const std::int64_t unit = d == along_ ? width_ : d == across_ ? kRows : 1, n = shape[static_cast<int>(d)];
      counts_[d] = (n + unit - 1) / unit;
      elements_ *= std::min(n, unit);
    }
  }
  std::int64_t elements() const { return elements_; }  // of a whole tile
  std::int64_t count() const {
    std::int64_t n = 1;
    for (std::size_t d = 0; d < in_.size(); ++d) n *= counts_[d];
    return n;
  }

  template <class From, class To>
  void copy(const From* source, To* destination, std::int64_t begin, std::int64_t end) const {
    std::array<std::int64_t, kMaxRank> index{};
    std::int64_t rest = begin;
    for (std::size_t d = in_.size(); d-- > 0; rest /= counts_[d]) index[d] = rest % counts_[d];
    for (std::int64_t tile = begin; tile < end; ++tile) {
      const From* s = source;
      To* d = destination;
      for (std::size_t k = 0; k < in_.size(); ++k) {
        if (k == along_ || k == across_) continue;
        s += in_[k][static_cast<std::size_t>(index[k])];
        d += out_[k][static_cast<std::size_t>(index[k])];
      }
      const std::int64_t first_row = across_ == along_ ? 0 : index[across_] * kRows;
      copy_tile(s, d, static_cast<std::size_t>(index[along_] * width_), static_cast<std::size_t>(first_row));
      for (std::size_t k = in_.size(); k-- > 0 && ++index[k] == counts_[k];) index[k] = 0;
    }
  }

 private:
  static constexpr std::int64_t kWidth = 16, kLong = 1024, kRows = 64;

  template <class From, class To>
  void copy_tile(const From* source, To* destination, std::size_t first, std::size_t first_row) const {
    const bool one = across_ == along_;
    const std::size_t width = std::min(static_cast<std::size_t>(width_), in_[along_].size() - first);
    const std::size_t rows = one ? 1 : std::min<std::size_t>(kRows, in_[across_].size() - first_row);
    const std::int64_t *const in = in_[along_].data() + first, *const out = out_[along_].data() + first;
    const bool line = width == kWidth && out[kWidth - 1] - out[0] == kWidth - 1;
    for (std::size_t row = first_row; row < first_row + rows; ++row) {
      const From* const s = source + (one ? 0 : in_[across_][row]);
      To* const d = destination + (one ? 0 : out_[across_][row]);
      if (line) {
        To* const to = d + out[0];
        for (std::int64_t i = 0; i < kWidth; ++i) to[i] = static_cast<To>(s[in[i]]);
      } else {
        for (std::size_t i = 0; i < width; ++i) d[out[i]] = static_cast<To>(s[in[i]]);
      }
    }
  }

  const Offsets &in_, &out_;
  std::size_t along_, across_;
  std::array<std::int64_t, kMaxRank> counts_{};  // of tiles, by dimension
  std::int64_t width_ = kWidth, elements_ = 1;
};

template <class From, class To>
void copy_all(const Tiles& tiles, const From* source, To* destination) {
  parallel_for(tiles.count(), tiles.elements(),
               [&](std::int64_t begin, std::int64_t end) { tiles.copy(source, destination, begin, end); });
}

}  // namespace

std::int64_t Layout::storage_elements(const Shape& shape) const {
  if (plain()) return shape.elements();
  std::int64_t n = 1;
  for (std::int64_t d : padded) n *= d;
  return n;
}

std::int64_t Layout::channel_block(const Shape& shape) const {
  if (plain()) return 1;
  if (shape.rank() < 2 || blocks.size() != 1 || blocks[0].dim != 1) return 0;
  return *this == channels_blocked(shape, blocks[0].size) ? blocks[0].size : 0;
}

Layout Layout::channels_blocked(const Shape& shape, std::int64_t block) {
  if (block == 1) return {};
  Layout layout;
  layout.padded = shape.dims();
  layout.padded[1] = (shape[1] + block - 1) / block * block;
  layout.blocks = {{1, block}};
  layout.strides.resize(layout.padded.size());
  std::int64_t stride = block;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    const auto k = static_cast<std::size_t>(d);
    layout.strides[k] = stride;
    stride *= d == 1 ? layout.padded[k] / block : layout.padded[k];
  }
  return layout;
}

std::string Layout::str() const {
  if (plain()) return "plain";
  // Outer dimensions by falling stride, then the blocks: "abcd" are dimensions 0 to 3, upper case where blocked.
  std::vector<std::size_t> order(padded.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return strides[a] > strides[b]; });
  std::string text;
  for (std::size_t d : order) {
    const bool blocked =
        std::any_of(blocks.begin(), blocks.end(), [&](Block b) { return b.dim == static_cast<int>(d); });
    text += static_cast<char>((blocked ? 'A' : 'a') + static_cast<int>(d));
  }
  for (Block b : blocks) text += formatted("{}{}", b.size, static_cast<char>('a' + b.dim));
  return text;
}

// The offset of an element in any blocked layout is a sum over dimensions, which makes every reorder a table look-up.
Reorder::Offsets Reorder::offsets(const Shape& shape, const Layout& layout) {
  const int rank = shape.rank();
  Offsets tables(static_cast<std::size_t>(rank));
  std::int64_t stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    auto& table = tables[static_cast<std::size_t>(d)];
    table.resize(static_cast<std::size_t>(shape[d]));
    for (std::int64_t i = 0; i < shape[d]; ++i) {
      if (layout.plain()) {
        table[static_cast<std::size_t>(i)] = i * stride;
        continue;
      }
      std::int64_t rest = i, offset = 0, inner = 1;
      for (std::size_t b = layout.blocks.size(); b-- > 0;) {
        const Layout::Block& block = layout.blocks[b];
        if (block.dim == d) {
          offset += rest % block.size * inner;
          rest /= block.size;
        }
        inner *= block.size;
      }
      table[static_cast<std::size_t>(i)] = offset + rest * layout.strides[static_cast<std::size_t>(d)];
    }
    stride *= shape[d];
  }
  return tables;
}

Reorder::Reorder(const Shape& shape, DType from_dtype, const Layout& from, DType to_dtype, const Layout& to)
    : shape_(shape),
      from_(from_dtype),
      to_(to_dtype),
      bytes_(static_cast<std::size_t>(to.storage_elements(shape)) * size_of(to_dtype)),
      same_(from_dtype == to_dtype && (from == to || shape.rank() == 0)),
      clears_(to.has_padding(shape)) {
  const auto converts = [](DType t) { return t == DType::F32 || t == DType::BF16; };
  check(from_ == to_ || (converts(from_) && converts(to_)), "reorder", "no conversion from {} to {}", name_of(from_),
        name_of(to_));
  check(shape.rank() <= kMaxRank, "reorder", "shape {} has more than {} dimensions", shape.str(), kMaxRank);
  if (same_) return;
  in_ = offsets(shape, from);
  out_ = offsets(shape, to);
}

template <class From, class To>
void Reorder::copy(const void* from, void* to) const {
  const auto* source = static_cast<const From*>(from);
  auto* destination = static_cast<To*>(to);
  if (shape_.rank() == 0) {
    *destination = static_cast<To>(*source);
  } else {
    copy_all(Tiles(shape_, in_, out_), source, destination);
  }
}

void Reorder::operator()(const void* source, void* destination) const {
  if (bytes_ == 0) return;
  if (same_) {
    std::memcpy(destination, source, bytes_);
    return;
  }
  if (clears_) std::memset(destination, 0, bytes_);
  if (shape_.elements() == 0) return;
  if (from_ != to_) {
    return from_ == DType::F32 ? copy<float, BFloat16>(source, destination)
                               : copy<BFloat16, float>(source, destination);
  }
  switch (size_of(to_)) {
    case 8:
      return copy<std::uint64_t, std::uint64_t>(source, destination);
    case 4:
      return copy<std::uint32_t, std::uint32_t>(source, destination);
    case 2:
      return copy<std::uint16_t, std::uint16_t>(source, destination);
    default:
      return copy<std::uint8_t, std::uint8_t>(source, destination);
  }
}

}  // namespace lockstep

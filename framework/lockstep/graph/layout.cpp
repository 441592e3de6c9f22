#include "lockstep/graph/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace lockstep {
namespace {

// offsets[d][i]: the contribution of index i along dimension d to the element offset. Offsets of any blocked layout are a sum
// over dimensions, which makes every reorder a table look-up.
std::vector<std::vector<std::int64_t>> offset_tables(const Shape& shape, const Layout& layout) {
  const int rank = shape.rank();
  std::vector<std::vector<std::int64_t>> tables(static_cast<std::size_t>(rank));
  std::int64_t stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    auto& table = tables[static_cast<std::size_t>(d)];
    table.resize(static_cast<std::size_t>(shape[d]));
    if (layout.plain()) {
      for (std::int64_t i = 0; i < shape[d]; ++i) table[static_cast<std::size_t>(i)] = i * stride;
      stride *= shape[d];
      continue;
    }
    for (std::int64_t i = 0; i < shape[d]; ++i) {
      std::int64_t rest = i, offset = 0, inner = 1;
      for (auto block = layout.blocks.rbegin(); block != layout.blocks.rend(); ++block) {
        if (block->dim == d) {
          offset += rest % block->size * inner;
          rest /= block->size;
        }
        inner *= block->size;
      }
      table[static_cast<std::size_t>(i)] = offset + rest * layout.strides[static_cast<std::size_t>(d)];
    }
  }
  return tables;
}

template <class Word>
void reorder_words(const Shape& shape, const Layout& from, const Word* source, const Layout& to, Word* destination) {
  if (to.has_padding(shape)) std::memset(destination, 0, static_cast<std::size_t>(to.storage_elements(shape)) * sizeof(Word));
  if (shape.elements() == 0) return;
  if (shape.rank() == 0) {
    *destination = *source;
    return;
  }
  const auto in = offset_tables(shape, from), out = offset_tables(shape, to);
  const int last = shape.rank() - 1;
  const auto& in_row = in[static_cast<std::size_t>(last)];
  const auto& out_row = out[static_cast<std::size_t>(last)];
  std::vector<std::int64_t> index(static_cast<std::size_t>(last), 0);
  for (;;) {
    const Word* s = source;
    Word* d = destination;
    for (std::size_t k = 0; k < index.size(); ++k) {
      s += in[k][static_cast<std::size_t>(index[k])];
      d += out[k][static_cast<std::size_t>(index[k])];
    }
    for (std::size_t i = 0; i < in_row.size(); ++i) d[out_row[i]] = s[in_row[i]];
    int k = last - 1;
    while (k >= 0 && ++index[static_cast<std::size_t>(k)] == shape[k]) index[static_cast<std::size_t>(k--)] = 0;
    if (k < 0) return;
  }
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
    const bool blocked = std::any_of(blocks.begin(), blocks.end(), [&](Block b) { return b.dim == static_cast<int>(d); });
    text += static_cast<char>((blocked ? 'A' : 'a') + static_cast<int>(d));
  }
  for (Block b : blocks) text += fmt::format("{}{}", b.size, static_cast<char>('a' + b.dim));
  return text;
}

void reorder(const Shape& shape, DType dtype, const Layout& from, const void* source, const Layout& to, void* destination) {
  if (from == to) {
    std::memcpy(destination, source, static_cast<std::size_t>(from.storage_elements(shape)) * size_of(dtype));
    return;
  }
  switch (size_of(dtype)) {
    case 8:
      return reorder_words(shape, from, static_cast<const std::uint64_t*>(source), to, static_cast<std::uint64_t*>(destination));
    case 4:
      return reorder_words(shape, from, static_cast<const std::uint32_t*>(source), to, static_cast<std::uint32_t*>(destination));
    default:
      return reorder_words(shape, from, static_cast<const std::uint8_t*>(source), to, static_cast<std::uint8_t*>(destination));
  }
}

}  // namespace lockstep

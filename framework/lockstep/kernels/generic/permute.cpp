#include "lockstep/kernels/generic/permute.h"

#include <algorithm>
#include <cstring>

#include "lockstep/core/parallel_for.h"
#include "lockstep/kernels/generic/element_bytes.h"

namespace lockstep::kernels::generic {
namespace {

constexpr std::int64_t kTile = 1024;   // elements of a tile; as many of 8 bytes take a quarter of a first-level cache
constexpr std::int64_t kColumns = 32;  // at least a cache line of 2-byte elements
constexpr std::int64_t kFew = 8;       // below it, rows or columns are copied without a buffer

}  // namespace

PermutedCopy::PermutedCopy(const Shape& from, const std::vector<int>& axes, std::size_t element_bytes)
    : element_bytes_(element_bytes) {
  std::vector<std::int64_t> strides(axes.size(), 1);
  for (int d = from.rank() - 1; d > 0; --d)
    strides[static_cast<std::size_t>(d - 1)] = strides[static_cast<std::size_t>(d)] * from[d];
  std::vector<Axis> all;  // from the innermost one of the output on
  std::int64_t out = 1;
  for (std::size_t k = axes.size(); k-- > 0;) {
    const Axis axis{from[axes[k]], strides[static_cast<std::size_t>(axes[k])], out};
    out *= axis.size;
    if (axis.size == 1) continue;
    if (!all.empty() && axis.in == all.back().in * all.back().size) {
      all.back().size *= axis.size;
    } else {
      all.push_back(axis);
    }
  }
  if (all.empty()) return;
  columns_ = all.front();
  all.erase(all.begin());
  if (columns_.in != 1) {
    const auto rows = std::ranges::find(all, 1, &Axis::in);
    if (rows != all.end()) {  // there is one unless the value is empty
      rows_ = *rows;
      all.erase(rows);
    }
  }
  outer_ = std::move(all);
  column_tile_ = std::min(columns_.size, rows_.size < kFew ? kTile / std::max<std::int64_t>(rows_.size, 1) : kColumns);
  row_tile_ = std::min(rows_.size, kTile / std::max<std::int64_t>(column_tile_, 1));
}

PermutedCopy::Corner PermutedCopy::corner(std::int64_t outer) const {
  Corner corner;
  for (const Axis& axis : outer_) {
    const std::int64_t i = outer % axis.size;
    outer /= axis.size;
    corner.in += i * axis.in;
    corner.out += i * axis.out;
  }
  return corner;
}

template <class Element>
void PermutedCopy::copy_tile(const Element* source, std::int64_t rows, Element* destination) const {
  Element buffer[kTile];
  for (std::int64_t first = 0; first < columns_.size; first += column_tile_) {
    const std::int64_t columns = std::min(column_tile_, columns_.size - first);
    const Element* const from = source + first * columns_.in;
    Element* const to = destination + first;
    if (columns < kFew) {
      for (std::int64_t c = 0; c < columns; ++c) {
        for (std::int64_t r = 0; r < rows; ++r) to[r * rows_.out + c] = from[c * columns_.in + r];
      }
    } else if (rows < kFew) {
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < columns; ++c) to[r * rows_.out + c] = from[c * columns_.in + r];
      }
    } else {
      for (std::int64_t c = 0; c < columns; ++c) {
        for (std::int64_t r = 0; r < rows; ++r) buffer[r * columns + c] = from[c * columns_.in + r];
      }
      for (std::int64_t r = 0; r < rows; ++r)
        std::memcpy(to + r * rows_.out, buffer + r * columns, static_cast<std::size_t>(columns) * sizeof(Element));
    }
  }
}

template <class Element>
void PermutedCopy::copy(const Element* source, Element* destination) const {
  std::int64_t outer = 1;
  for (const Axis& axis : outer_) outer *= axis.size;
  if (outer * rows_.size * columns_.size == 0) return;
  const std::int64_t tiles = (rows_.size + row_tile_ - 1) / row_tile_;
  parallel_for(outer * tiles, row_tile_ * columns_.size, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t item = begin; item < end; ++item) {
      const Corner at = corner(item / tiles);
      const std::int64_t row = item % tiles * row_tile_;
      if (columns_.in == 1) {
        std::memcpy(destination + at.out, source + at.in, static_cast<std::size_t>(columns_.size) * sizeof(Element));
      } else {
        copy_tile(source + at.in + row, std::min(row_tile_, rows_.size - row), destination + at.out + row * rows_.out);
      }
    }
  });
}

void PermutedCopy::operator()(const void* source, void* destination) const {
  with_element_of(element_bytes_, [&]<class Element>(Element) {
    copy(static_cast<const Element*>(source), static_cast<Element*>(destination));
  });
}

}  // namespace lockstep::kernels::generic

// The division of n items into contiguous parts, the same everywhere in the library: the first n % parts get one more.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lockstep {

struct Range {
  std::int64_t begin = 0, end = 0;
  constexpr std::int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// The elements of both; where there are none, an empty range.
constexpr Range intersection(Range a, Range b) {
  const std::int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

// Part `index` of [0, n) cut into `parts`: 128 into 3 gives 43, 43, 42.
constexpr Range part_of(std::int64_t n, std::int64_t parts, std::int64_t index) {
  const std::int64_t base = n / parts, extra = n % parts;
  const std::int64_t begin = index * base + std::min(index, extra);
  return {begin, begin + base + (index < extra ? 1 : 0)};
}

// Part `index` of `parts` of a range that begins at a block, in whole blocks counted from 0.
constexpr Range part_in_blocks(Range range, std::int64_t parts, std::int64_t index, std::int64_t block) {
  if (range.size() == 0) return range;  // an empty range may lie at the end, within a block
  const Range blocks{range.begin / block, (range.end + block - 1) / block};
  const Range chosen = part_of(blocks.size(), parts, index);
  return {std::min((blocks.begin + chosen.begin) * block, range.end),
          std::min((blocks.begin + chosen.end) * block, range.end)};
}

}  // namespace lockstep

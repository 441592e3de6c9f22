// How n things are divided into contiguous parts everywhere in the library: the first n % parts get one more.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lockstep {

struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// Part `index` of [0, n) cut into `parts`: 128 into 3 gives 43, 43, 42.
constexpr Range part_of(std::int64_t n, std::int64_t parts, std::int64_t index) {
  const std::int64_t base = n / parts, extra = n % parts;
  const std::int64_t begin = index * base + std::min(index, extra);
  return {begin, begin + base + (index < extra ? 1 : 0)};
}

}  // namespace lockstep

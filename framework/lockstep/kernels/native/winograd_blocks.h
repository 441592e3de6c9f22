// The part that forward and gradients of Winograd's convolutions share: sizes of groups of tiles, padded planes, the
// division among threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lockstep/core/parallel_for.h"
#include "lockstep/core/partition.h"
#include "lockstep/kernels/native/rounding.h"
#include "lockstep/kernels/native/tables.h"

namespace lockstep::kernels::native {

inline std::int64_t round_to_block(std::int64_t channels) { return rounded_up(channels, kLanes); }

// An odd number of cache lines, so that the same place of all planes does not fall into one set of a cache.
inline std::int64_t padded_plane(std::int64_t elements) { return (elements / kLanes | 1) * kLanes; }

// The size of groups of n items, of at most `most` and at least `least` where there are so many: all alike, and where
// there are several as many for each worker.
inline std::int64_t even_groups(std::int64_t n, std::int64_t least, std::int64_t most, std::int64_t workers) {
  if (n == 0) return 1;
  most = std::max(least, most);
  std::int64_t groups = (n + most - 1) / most;
  if (groups > 1 || n > most / 2)
    groups = std::clamp((groups + workers - 1) / workers * workers, groups, std::max(groups, n / least));
  return (n + groups - 1) / groups;
}

// Calls body(worker, range) for contiguous ranges of items, which `workers` share evenly; none is empty.
template <class Body>
void for_workers(std::int64_t workers, std::int64_t items, std::int64_t work, const Body& body) {
  parallel_for(workers, std::max<std::int64_t>(1, items / workers) * work, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t worker = first; worker < last; ++worker) {
      const Range range = part_of(items, workers, worker);
      if (range.size() > 0) body(worker, range);
    }
  });
}

}  // namespace lockstep::kernels::native

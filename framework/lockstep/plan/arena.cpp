#include "lockstep/plan/arena.h"

#include <algorithm>

namespace lockstep::plan {

std::size_t assign_offsets(std::vector<Lifetime*> lifetimes) {
  for (Lifetime* l : lifetimes) l->bytes = whole_lines(l->bytes);
  std::ranges::stable_sort(lifetimes, [](const Lifetime* a, const Lifetime* b) { return a->bytes > b->bytes; });
  std::vector<Lifetime*> placed;  // by offset
  std::size_t total = 0;
  for (Lifetime* l : lifetimes) {
    std::size_t best = SIZE_MAX, best_gap = SIZE_MAX, end = 0;
    for (const Lifetime* other : placed) {
      if (other->last < l->first || l->last < other->first) continue;
      if (other->offset >= end && other->offset - end >= l->bytes && other->offset - end < best_gap) {
        best = end;
        best_gap = other->offset - end;
      }
      end = std::max(end, other->offset + other->bytes);
    }
    l->offset = best == SIZE_MAX ? end : best;
    total = std::max(total, l->offset + l->bytes);
    placed.insert(std::ranges::upper_bound(placed, l->offset, {}, &Lifetime::offset), l);
  }
  return total;
}

}  // namespace lockstep::plan

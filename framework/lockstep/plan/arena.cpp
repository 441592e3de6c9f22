#include "lockstep/plan/arena.h"

#include <algorithm>
#include <array>

namespace lockstep::plan {
namespace {

// Places the values in this order, each in the smallest gap that holds it beside those that live at the same time, and
// returns the bytes of all.
std::size_t place(const std::vector<Lifetime*>& lifetimes) {
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

// Orders that are good for some plans each: large values first; those that live long first; or by the product of both.
using Before = bool (*)(const Lifetime*, const Lifetime*);
std::size_t steps_of(const Lifetime* l) {
  return static_cast<std::size_t>(l->last) - static_cast<std::size_t>(l->first) + 1;
}
constexpr std::array<Before, 3> kOrders{
    [](const Lifetime* a, const Lifetime* b) { return a->bytes > b->bytes; },
    [](const Lifetime* a, const Lifetime* b) { return steps_of(a) > steps_of(b); },
    [](const Lifetime* a, const Lifetime* b) { return a->bytes * steps_of(a) > b->bytes * steps_of(b); },
};

}  // namespace

std::size_t assign_offsets(std::vector<Lifetime*> lifetimes) {
  for (Lifetime* l : lifetimes) l->bytes = whole_lines(l->bytes);
  std::size_t least = SIZE_MAX, best = 0;
  for (std::size_t k = 0; k < kOrders.size(); ++k) {
    std::vector<Lifetime*> ordered = lifetimes;
    std::ranges::stable_sort(ordered, kOrders[k]);
    if (const std::size_t bytes = place(ordered); bytes < least) {
      least = bytes;
      best = k;
    }
  }
  std::ranges::stable_sort(lifetimes, kOrders[best]);
  return place(lifetimes);
}

}  // namespace lockstep::plan

// What copies of one block should hold, decided by their hashes: each votes for what its owner wrote, and the majority
// of all that exist wins. A value, pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

struct BlockCopy {
  int owner;                      // the rank that writes it
  std::uint64_t sealed, current;  // hashes of what it wrote, and of what is there
};

struct BallotResult {
  std::vector<int> damaged;  // owners whose memory is not what it should be, or, undecided, of all that differ
  int source = -1;           // an owner who has what it should be; -1: nobody, or undecided
};

// Two copies of which one no longer fits its own seal are decided too: both owners wrote the same.
inline BallotResult elect(std::span<const BlockCopy> copies) {
  BallotResult result;
  std::uint64_t elected = 0;
  for (const BlockCopy& c : copies) {
    if (2 * std::ranges::count(copies, c.sealed, &BlockCopy::sealed) > std::ssize(copies)) elected = c.sealed;
  }
  const bool alike = std::ranges::all_of(copies, [&](const BlockCopy& c) { return c.current == copies[0].current; });
  for (const BlockCopy& c : copies) {
    const bool wrong = elected != 0 ? c.current != elected : c.current != c.sealed || !alike;
    if (wrong) result.damaged.push_back(c.owner);
    if (elected != 0 && !wrong && result.source < 0) result.source = c.owner;
  }
  return result;
}

}  // namespace lockstep

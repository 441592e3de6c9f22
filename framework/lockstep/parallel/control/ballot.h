// Decides by checksums which content is right where copies of one block differ: each copy votes for the checksum that
// its owner recorded, and a majority of all copies wins. Pure functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::parallel {

struct BlockCopy {
  int owner;                        // the rank that writes it
  std::uint64_t recorded, current;  // checksums: when it was written, and now
};

struct BallotResult {
  std::vector<int> damaged;  // owners of wrong copies; without a majority, of all copies that differ
  int source = -1;           // the owner of a right copy; -1: none, or no majority
};

// Two copies suffice if one copy no longer has its recorded checksum, because both owners recorded the same checksum.
inline BallotResult elect(std::span<const BlockCopy> copies) {
  BallotResult result;
  std::uint64_t elected = 0;
  for (const BlockCopy& c : copies) {
    if (2 * std::ranges::count(copies, c.recorded, &BlockCopy::recorded) > std::ssize(copies)) elected = c.recorded;
  }
  const bool alike = std::ranges::all_of(copies, [&](const BlockCopy& c) { return c.current == copies[0].current; });
  for (const BlockCopy& c : copies) {
    const bool wrong = elected != 0 ? c.current != elected : c.current != c.recorded || !alike;
    if (wrong) result.damaged.push_back(c.owner);
    if (elected != 0 && !wrong && result.source < 0) result.source = c.owner;
  }
  return result;
}

}  // namespace lockstep::parallel

// A finding of the memory guard (memory_guard.h).
#pragma once

#include <string>

namespace lockstep::parallel {

// Damage in the memory of a rank.
struct MemoryDamage {
  int rank;
  std::string what;
  int source = -1;  // a rank with the right content; -1: unknown
};

}  // namespace lockstep::parallel

// How much memory the process holds, as the kernel counts it (0 where the system does not tell), and giving back what
// it no longer uses. Any thread.
#pragma once

#include <cstddef>

namespace lockstep::host {

struct ProcessMemory {
  std::size_t resident = 0, peak = 0;  // bytes in memory now, and at most so far
};
ProcessMemory process_memory();

// Returns to the system what was freed but is kept for later allocations, after a phase that needed much and ended.
void release_freed_memory();

}  // namespace lockstep::host

// Reports how much memory the process has, as the kernel counts it, in which units, and returns unused memory to the
// system. Any thread.
#pragma once

#include <cstddef>

namespace lockstep::host {

struct ProcessMemory {
  std::size_t resident = 0, peak = 0;  // bytes in memory now, and the maximum so far; 0: the system does not tell
};
ProcessMemory process_memory();

std::size_t page_bytes();  // the unit in which the kernel gives memory: 4 KiB on x86-64, up to 64 KiB elsewhere

// Returns freed memory, which the C library keeps for later allocations, to the system. Call it after a phase that
// needed much memory.
void release_freed_memory();

}  // namespace lockstep::host

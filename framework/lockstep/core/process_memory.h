// How much memory the process holds, as the kernel counts it. 0 where the system does not tell. Any thread.
#pragma once

#include <cstddef>

namespace lockstep {

struct ProcessMemory {
  std::size_t resident = 0, peak = 0;  // bytes in memory now, and at most so far
};
ProcessMemory process_memory();

}  // namespace lockstep

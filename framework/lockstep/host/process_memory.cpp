#include "lockstep/host/process_memory.h"

#include <malloc.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace lockstep::host {

ProcessMemory process_memory() {
  ProcessMemory memory;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {  // "VmRSS:     12345 kB"
    const auto bytes = [&] { return std::stoull(line.substr(line.find(':') + 1)) << 10; };
    if (line.starts_with("VmRSS:")) memory.resident = bytes();
    if (line.starts_with("VmHWM:")) memory.peak = bytes();
  }
  return memory;
}

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

void release_freed_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace lockstep::host

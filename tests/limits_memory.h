// Whether this process can be given less memory.
#pragma once

#include <sys/resource.h>

#include <algorithm>

namespace lockstep {

// Whether limits of memory have an effect: not with sanitizers, which map memory in their own ways, and not under
// QEMU's emulation of a process, where such a limit can be set but is never read back.
inline bool limits_memory() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#else
  rlimit before{}, after{};
  if (::getrlimit(RLIMIT_AS, &before) != 0) return false;
  rlimit limit = before;  // a little less than now, or half of what a process of x86-64 can have at all
  limit.rlim_cur = std::min(rlim_t{1} << 46, before.rlim_cur - 1);
  const bool set = ::setrlimit(RLIMIT_AS, &limit) == 0 && ::getrlimit(RLIMIT_AS, &after) == 0;
  ::setrlimit(RLIMIT_AS, &before);
  return set && after.rlim_cur == limit.rlim_cur;
#endif
}

}  // namespace lockstep

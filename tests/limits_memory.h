// Whether this process can be given less memory.
#pragma once

#include <sys/resource.h>

namespace lockstep {

// Whether limits of memory have an effect: not with sanitizers, which map memory in their own ways, and not under
// QEMU's emulation of a process, where such a limit can be set but is never read back.
inline bool limits_memory() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#else
  rlimit before{}, after{};
  if (::getrlimit(RLIMIT_AS, &before) != 0) return false;
  rlimit limit = before;
  limit.rlim_cur = rlim_t{1} << 46;                    // half of what a process of x86-64 can have at all
  if (limit.rlim_cur >= before.rlim_cur) return true;  // limited already
  const bool set = ::setrlimit(RLIMIT_AS, &limit) == 0 && ::getrlimit(RLIMIT_AS, &after) == 0;
  ::setrlimit(RLIMIT_AS, &before);
  return set && after.rlim_cur == limit.rlim_cur;
#endif
}

}  // namespace lockstep

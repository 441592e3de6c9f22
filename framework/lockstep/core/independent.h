// LOCKSTEP_INDEPENDENT before a loop: no iteration reads what another one writes, so that it may be vectorised without
// a look at the addresses. Clang has no such pragma that keeps silent where it does not vectorise, and looks.
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
#define LOCKSTEP_INDEPENDENT _Pragma("GCC ivdep")
#else
#define LOCKSTEP_INDEPENDENT
#endif

// The processes that come from this one, found by their parents in /proc and never by name. One that lost its parent
// is ours again after adopt_orphans(), whatever session it made for itself, so that a killed mpirun leaves no rank
// behind.
#pragma once

#include <sys/types.h>

#include <set>
#include <vector>

namespace lockstep::supervisor {

// From now on orphans below this process become its children. An Error where the system refuses.
void adopt_orphans();

// All below this process, zombies apart.
std::vector<pid_t> descendants();

// Ends all below this process with SIGKILL, waits until they are gone and returns how many there were. An Error if
// some are still there after ten seconds, as one in an uninterruptible state may be.
std::size_t end_descendants();

}  // namespace lockstep::supervisor

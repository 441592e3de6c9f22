// The descendants of this process, found by their parents in /proc and never by name. After adopt_orphans() a process
// that lost its parent becomes a child of this one, whatever session it made for itself, so that a killed mpirun leaves
// no rank behind.
#pragma once

#include <sys/types.h>

#include <set>
#include <vector>

namespace lockstep::supervisor {

// From now on orphans below this process become its children. An Error where the system refuses.
void adopt_orphans();

// All descendants, except zombies.
std::vector<pid_t> descendants();

// Ends all descendants with SIGKILL, waits until they are gone and returns their number. Throws Error if some are still
// there after ten seconds, as a process in an uninterruptible state may be.
std::size_t end_descendants();

}  // namespace lockstep::supervisor

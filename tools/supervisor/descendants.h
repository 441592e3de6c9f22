// The descendants of this process, found by their parents in /proc and never by name. After adopt_orphans() a process
// that lost its parent becomes a child of this one, whatever session it made for itself, so that a killed mpirun leaves
// no rank behind.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

namespace lockstep::supervisor {

// From now on orphans below this process become its children. An Error where the system refuses.
void adopt_orphans();

// All descendants, except zombies.
std::vector<pid_t> descendants();

struct EndedDescendants {
  std::size_t ended = 0;
  std::vector<pid_t> left = {};  // still there, as a process that waits for a dead file system

  std::string problem() const;  // what is to be said of those; empty: there are none
};
// Ends all descendants with SIGKILL, and waits until they are gone: ten seconds at most, after the time in which
// daemons of MPI end by themselves.
[[nodiscard]] EndedDescendants end_descendants();

}  // namespace lockstep::supervisor

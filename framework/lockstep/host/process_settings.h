// Settings that OpenMP, OpenBLAS and MPI read from the environment once, when they are loaded or initialised: how long
// a thread spins before it sleeps, and how many threads OpenBLAS starts. For programs, in the main thread before
// MPI_Init; a library in a caller's job changes none of them. Variables that the user has set stay.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/host/threads.h"

namespace lockstep::host {

struct ProcessFacts {
  Cores cores;
  int local_ranks = 1;
  int threads = 1;    // compute threads of this rank
  int blas_pool = 0;  // threads of OpenBLAS's own pool, including the caller's; 0: OpenBLAS uses OpenMP's threads
  // Reads an environment variable; std::nullopt if it is unset.
  std::function<std::optional<std::string>(const std::string&)> variable;
};

struct ProcessSettings {
  struct Variable {
    std::string name, value;
    bool operator==(const Variable&) const = default;
  };
  std::vector<Variable> variables;  // environment variables to set
  bool reload = false;              // a library that is already loaded must read one of them: restart the process
};

// Returns whether the node's ranks together have more threads than the cores that they may use.
bool oversubscribed(const Cores& cores, int local_ranks, int threads);

// Chooses the settings for a process. If threads are oversubscribed, a waiting thread sleeps at once, because spinning
// would keep its core from the thread that it waits for; MPI yields too. Otherwise a thread spins for some
// microseconds, the time between two kernels, and no longer, because another process may take the core of the thread
// that it waits for. OpenBLAS's own pool is limited to the thread budget and spins as briefly. Open MPI sends long
// messages over TCP by its faster protocol.
ProcessSettings process_settings(const ProcessFacts& facts);

// Whether Open MPI bound this rank by its own default (each of two ranks to one core), without a request for it, to
// fewer cores than the rank would have threads if it were not bound. `threads` of the facts is the requested number; 0:
// none was requested.
bool is_bound_by_default(const ProcessFacts& facts);
// Describes the binding that apply_process_settings() has undone: "Open MPI's default binding to 1 core was undone";
// empty: it has undone none.
std::string undone_binding();

// Undoes a binding as above, and sets the settings; where a library has read the settings already, the process
// replaces itself once by the same program with the same arguments (and process id), so call it before anything has an
// effect. A process that cannot replace itself goes on as it is. `threads` is the requested number; 0: as many as there
// are cores.
void apply_process_settings(int local_ranks, int threads, char** argv);

}  // namespace lockstep::host

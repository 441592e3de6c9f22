// Settings that OpenMP, OpenBLAS and MPI read from the environment once, when they are loaded or initialised: how long
// a thread spins before it sleeps, and how many threads OpenBLAS starts. For programs, before MPI_Init; a library
// inside somebody else's job leaves all of them alone. What the user has set stays.
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
  int blas_pool = 0;  // threads that OpenBLAS has started for itself, the caller's counted; 0: it uses OpenMP's
  // Reads an environment variable; std::nullopt if it is unset.
  std::function<std::optional<std::string>(const std::string&)> variable;
};

struct ProcessSettings {
  struct Variable {
    std::string name, value;
    bool operator==(const Variable&) const = default;
  };
  std::vector<Variable> variables;  // to be set
  bool reload = false;              // a library that is loaded already has to read one of them
};

// Whether this rank's threads, with those of the node's other ranks, are more than the cores they may use.
bool crowded(const Cores& cores, int local_ranks, int threads);

// Crowded threads sleep at once where they wait, or they would keep off its core the thread they wait for; MPI yields.
// Threads with a core each spin for some microseconds, the time between two kernels, and no longer: when another
// process takes the core of one, the others find out by sleeping. A pool of OpenBLAS's own starts no larger than the
// budget, and its threads leave the cores to OpenMP's as soon. Open MPI sends long messages over TCP the faster way.
ProcessSettings process_settings(const ProcessFacts& facts);

// Whether Open MPI bound this rank by its own default (each of two ranks to one core), nobody having asked for that, to
// fewer cores than it would have threads if it were not bound. `threads` of the facts is what was asked for, 0:
// nothing.
bool is_bound_by_default(const ProcessFacts& facts);
// What settle_process() did about that: "Open MPI's default binding to 1 core was undone", or nothing.
std::string undone_binding();

// Undoes a binding as above, and sets the settings; where that is too late for a library, the process replaces itself
// once by the same program with the same arguments (and process id), so call it before anything has an effect. Where
// that cannot be, the process goes on as it is. `threads` is what was asked for, 0 for as many as there are cores.
void settle_process(int local_ranks, int threads, char** argv);

}  // namespace lockstep::host

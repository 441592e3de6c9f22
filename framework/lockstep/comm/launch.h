// Recognises a launch that went wrong: N processes were started as one job, but each found itself alone because the
// launcher and the MPI library do not speak the same protocol. Pure: works on facts, so every launcher can be tested.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace lockstep::comm {

// Reads an environment variable; std::nullopt if it is unset.
using ReadVariable = std::function<std::optional<std::string>(const std::string&)>;

struct LaunchFacts {
  int world_size = 1;
  std::string library;  // as Environment::library() gives it
  ReadVariable variable;
};

// One line that names what was found and what to do, or nothing if the launch is sound. LOCKSTEP_ALLOW_SINGLETONS=1
// declares that independent processes are meant.
std::optional<std::string> launch_problem(const LaunchFacts& facts);

// Ranks on this node as the launcher's variables tell it, before MPI_Init; 1 where they do not. Slurm: the variables of
// the step; a batch script, where no step runs, has those of the job too.
int launched_local_ranks(const ReadVariable& variable);
int launched_local_ranks();  // of this process
// Ranks of the job, and this process's number among those of its node; 1 and 0 where the launcher's variables do not
// tell.
int launched_ranks();
int launched_local_rank();
// This process's rank among all of the job, as the launcher's variables tell it; -1 where they do not. Allocates
// nothing.
int launched_rank();

}  // namespace lockstep::comm

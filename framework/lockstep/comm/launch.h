// Recognises a failed launch: a launcher started N processes as one job, but each is alone, because the launcher and
// the MPI library use different protocols. launch_problem() is a pure function of facts, so that tests can try any
// launcher.
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

// Returns one line with the problem and the remedy; empty: the launch is correct. LOCKSTEP_ALLOW_SINGLETONS=1 declares
// that independent processes are intended.
std::optional<std::string> launch_problem(const LaunchFacts& facts);

// Returns the number of ranks on this node from the launcher's variables, before MPI_Init; 1 if it is unknown. Uses
// Slurm's variables of the step, because a batch script outside a step has the variables of the job too.
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

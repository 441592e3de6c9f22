// The command of a job that `lockstep launch` starts by Hydra, the mpiexec of MPICH and Intel MPI. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/launcher/mpirun_line.h"

namespace lockstep::launcher {

// Ranks of each host of `line`, "8,8", from which a rank tells the number of its host; empty: one host.
inline constexpr const char* kSlotsVariable = "LOCKSTEP_LAUNCH_SLOTS";

// Throws Error for what Hydra cannot do: fixed ports, nodes whose launchers wait for daemons, users in a list of hosts.
std::vector<std::string> hydra_words(const MpirunLine& line);

// The variables that mpiexec itself has to find in its environment: the port of ssh.
std::map<std::string, std::string> hydra_variables(const MpirunLine& line);

// The number of the host on which rank `rank` is, of hosts with these ranks ("2,4").
int host_of_rank(const std::string& slots, int rank);

}  // namespace lockstep::launcher

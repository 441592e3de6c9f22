// Files of hosts as Hydra reads them, the mpiexec of MPICH and Intel MPI: a line `NAME[:RANKS] [user=USER] [KEY=VALUE
// ...]` per host, '#' begins a comment.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lockstep/launch/host_list.h"

namespace lockstep::launch {

// `file` is the name that errors give, with the line. The counts of a host on several lines are added up; without a
// count in any of them its slots are 0, not said.
HostList parse_machinefile(std::string_view text, const std::string& file);

// The same text without the lines of the hosts in `lost`, named as by Host::login().
std::string machinefile_without(std::string_view text, std::span<const std::string> lost);

}  // namespace lockstep::launch

// Hosts and ranks as Slurm writes them: `n[001-003,7],m1` and `8(x2),4`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/launch/host_list.h"
#include "lockstep/launch/settings.h"

namespace lockstep::launch {

// The names in order, as `scontrol show hostnames` writes them. `origin` is what errors give with the column.
std::vector<std::string> expand_node_list(std::string_view text, const std::string& origin);

// Tasks of each node, "8(x2),4" gives 8, 8, 4.
std::vector<std::int64_t> expand_task_counts(std::string_view text, const std::string& origin);

// Of SLURM_JOB_NODELIST (or SLURM_NODELIST) and SLURM_TASKS_PER_NODE (or SLURM_NTASKS_PER_NODE), of the step where it
// has its own; slots are not said where no count is set. Throws Error if the counts are not as many as the nodes, or if
// their sum is not SLURM_NTASKS.
HostList slurm_hosts(const Settings& settings);

// `n[001-003]`: neighbours with one prefix and numbers of one width together.
std::string to_node_list(const HostList& list);
std::string to_task_counts(const HostList& list);

}  // namespace lockstep::launch

// The part that this node has in a job: its name, its ranks, and the program as it lies here.
#pragma once

#include <string>

#include "tools/launcher/launch.h"
#include "tools/launcher/messages.h"

namespace lockstep::launcher {

// As Open MPI names this host: without its domain.
std::string host_name();

// The ranks of --nproc-per-node on this node. Throws Error for a text that is no number.
int ranks_of_node(const std::string& text);

// As node `node` of `nodes`.
Join describe_node(const LaunchOptions& options, int node, int nodes);

}  // namespace lockstep::launcher

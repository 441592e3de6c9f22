// Options of `lockstep launch` that torchrun's variables stand for: NNODES, NODE_RANK, NPROC_PER_NODE, MASTER_ADDR and
// MASTER_PORT.
#pragma once

#include "tools/launcher/launch.h"
#include "tools/launcher/mpirun_line.h"

namespace lockstep::launcher {

// Fills in what the command line has not said (ranks_per_node: empty; it becomes "1" without a variable). A variable
// whose option was said is not looked at. Throws Error with name, value and range for one that is no such number.
void read_environment(LaunchOptions& options, const ReadVariable& variable);

}  // namespace lockstep::launcher

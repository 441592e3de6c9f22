// The subcommands of `lockstep`, a file each. Every function adds one to the program, with its options and what it does
// when chosen; results go to standard output, failures are thrown as Error. None needs MPI.
#pragma once

#include <CLI/CLI.hpp>

namespace lockstep::tools {

void add_models_command(CLI::App& app);
void add_inspect_command(CLI::App& app);
void add_checkpoint_command(CLI::App& app);
void add_compare_command(CLI::App& app);

}  // namespace lockstep::tools

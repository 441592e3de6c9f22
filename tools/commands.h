// The subcommands of `lockstep`, a file each. Every function adds one to the program, with its options and what it does
// when chosen; results go to standard output, failures are thrown as Error. None needs MPI.
#pragma once

#include <CLI/CLI.hpp>

namespace lockstep::tools {

void add_models_command(CLI::App& app);
void add_inspect_command(CLI::App& app);
void add_checkpoint_command(CLI::App& app);
void add_compare_command(CLI::App& app);
// Its exit code, the supervised job's, goes to `status`.
void add_run_command(CLI::App& app, int& status);

}  // namespace lockstep::tools

// The command `lockstep-data generate NAME`: computes samples of an equation (data/generate/) and writes them as HDF5.
#pragma once

#include <CLI/CLI.hpp>

namespace lockstep::datasets {

// Adds the command with one subcommand per equation to `app`. Their callbacks do the work, and throw Error.
void add_generate(CLI::App& app);

}  // namespace lockstep::datasets

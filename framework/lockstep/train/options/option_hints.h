// Explains the faults of a command line: unknown options in the order in which they were given, each with the option
// that was probably meant. For training programs and for the `lockstep` command.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::train {

// Names of options of `app`, without dashes, that resemble `name`: another spelling or a slip, else those that begin
// with it. At most three, maybe none.
std::vector<std::string> similar_options(const CLI::App& app, std::string_view name);

// One line; for errors of `app` or of its subcommands.
std::string explain(const CLI::App& app, const CLI::ParseError& error);

}  // namespace lockstep::train

// Explains errors of a command line: names unknown options in their order, each with the option that was probably
// intended. For training programs and the `lockstep` command.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::train {

// Returns at most three options of `app`, without dashes, that resemble `name`: other spellings and typing errors, else
// options that begin with it.
std::vector<std::string> similar_options(const CLI::App& app, std::string_view name);

// Returns one line that explains an error of `app` or of its subcommands.
std::string explain(const CLI::App& app, const CLI::ParseError& error);

}  // namespace lockstep::train

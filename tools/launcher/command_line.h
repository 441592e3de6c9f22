// The command line of `lockstep launch` in forms that users of torchrun and horovodrun type and CLI11 does not take.
#pragma once

#include <CLI/CLI.hpp>

namespace lockstep::launcher {

// `words` is main's: words[1] is the subcommand's name, and nothing is done where it is not that of `command`. Removes
// -- before the program and makes -np of it --np, in place. Returns how many words there are now.
int adapt_words(const CLI::App& command, int count, char** words);

}  // namespace lockstep::launcher

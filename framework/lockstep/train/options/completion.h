// Scripts with which shells complete the command line of a program: its commands, options, and the values of options
// that take some names only. The script is to be read by the shell; docs/commands.md tells where it is laid.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "lockstep/train/options/program_description.h"

namespace lockstep::train {

enum class Shell : std::uint8_t { Bash, Zsh, Fish };
inline constexpr std::array<std::string_view, 3> kShellNames{"bash", "zsh", "fish"};  // in the order of Shell

// Returns the shell of that name. Throws Error at site "completion" for another name.
Shell shell_named(std::string_view name);

std::string completion(const ProgramDescription& program, Shell shell);

}  // namespace lockstep::train

// The file in which --autotune keeps its choices: a JSON object of machines, of which each is an object that names an
// implementation for each kind of node. What is damaged in it is a warning in the log, and measured again.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace lockstep::train {

using KernelChoices = std::map<std::string, std::string>;  // choice_key() to implementation

// What the file has for this machine; nothing where it cannot be read.
KernelChoices read_autotune_cache(const std::filesystem::path& file, const std::string& machine);

// Replaces this machine's choices; others' stay.
void write_autotune_cache(const std::filesystem::path& file, const std::string& machine, const KernelChoices& choices);

}  // namespace lockstep::train

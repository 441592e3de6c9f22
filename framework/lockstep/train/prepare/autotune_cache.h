// Reads and writes the file of --autotune's choices: a JSON object with one object per machine, which names an
// implementation for each kind of graph node. Damaged parts give a warning in the log and are measured again.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace lockstep::train {

using KernelChoices = std::map<std::string, std::string>;  // choice_key() to implementation

// Returns the choices of this machine; empty if the file cannot be read.
KernelChoices read_autotune_cache(const std::filesystem::path& file, const std::string& machine);

// Replaces the choices of this machine; those of other machines stay.
void write_autotune_cache(const std::filesystem::path& file, const std::string& machine, const KernelChoices& choices);

}  // namespace lockstep::train

// The id of the run to which an output folder and its checkpoints belong: a random number, drawn when a run begins and
// kept when it is resumed. OUTPUT/run.json and each checkpoint contain it, so that files of different runs in one
// folder can be told apart. It does not depend on what a run computes.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/io/folder.h"

namespace lockstep::checkpoint {

// Draws a new id of 16 hexadecimal digits; throws Error if the system gives no random numbers.
std::string new_run_id();
bool is_run_id(std::string_view text);
// Returns PATH.RUN, the folder for a run whose own folder is gone and whose path belongs to another run. A slash at the
// end of `output` is ignored.
std::filesystem::path path_beside(const std::filesystem::path& output, const std::string& run);

// Returns the id of the run that owns the folder; empty if run.json is missing or contains no id. Throws Error if the
// file cannot be read.
std::optional<std::string> read_run_id(const io::Folder& output);
// Writes run.json, unless it contains this id already.
void write_run_id(const io::Folder& output, const std::string& id);

}  // namespace lockstep::checkpoint

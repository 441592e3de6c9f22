// Which run a folder of output and its checkpoints belong to: a random id, drawn when a run begins and kept over its
// resumes. It stands in OUTPUT/run.json and in each checkpoint, and tells runs apart whose files have come into one
// folder. It says nothing about what a run computes.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/io/folder.h"

namespace lockstep::checkpoint {

std::string new_run_id();  // 16 hexadecimal digits
bool is_run_id(std::string_view text);
// PATH.RUN, where a run goes on whose folder is gone and whose path another run has; also for a path with a slash at
// its end.
std::filesystem::path path_beside(const std::filesystem::path& output, const std::string& run);

// The run whose folder it is; empty where run.json is absent or says none. An Error where it cannot be read.
std::optional<std::string> read_run_id(const io::Folder& output);
// Does not touch the file if it says so already.
void write_run_id(const io::Folder& output, const std::string& id);

}  // namespace lockstep::checkpoint

// The subject of a process of the doctor: its options as a subject of the checks.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "lockstep/preflight/subject.h"
#include "tools/doctor/options.h"

namespace lockstep::tools {

// The options that travel to a process on another host; paths are made absolute.
nlohmann::json subject_settings(const DoctorOptions& options);

// `settings`, seen from here: hashes of the program and of the data set in place of their paths. `local_ranks` ranks
// run on this host.
preflight::Subject subject_here(const nlohmann::json& settings, int local_ranks);

// Names and sizes of all files below a folder, one a line, with a hash of samples of their content, of some of them
// where there are thousands; a line for each folder where there are very many; a line that says so if there is no such
// folder.
std::string folder_contents(const std::filesystem::path& folder);
std::string file_contents(const std::filesystem::path& file);

}  // namespace lockstep::tools

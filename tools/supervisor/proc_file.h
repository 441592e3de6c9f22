// Files of /proc, whose processes may end while they are read.
#pragma once

#include <filesystem>
#include <string>

namespace lockstep::supervisor {

// The text of the file; empty where the process has ended. Throws nothing of its own.
std::string proc_file(const std::filesystem::path& file);
// The same of an open file: empty where its process has ended since.
std::string proc_file(int file);

}  // namespace lockstep::supervisor

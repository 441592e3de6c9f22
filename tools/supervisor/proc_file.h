// Files of /proc, whose processes may end while they are read.
#pragma once

#include <filesystem>
#include <string>

namespace lockstep::supervisor {

// What can be read of it: nothing where there is no such process any more. Throws nothing of its own.
std::string proc_file(const std::filesystem::path& file);
// The same of a file that is open: nothing where its process has ended since.
std::string proc_file(int file);

}  // namespace lockstep::supervisor

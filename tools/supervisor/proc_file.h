// Files of /proc, whose processes may end while they are read.
#pragma once

#include <filesystem>
#include <string>

namespace lockstep::supervisor {

// What can be read of it: nothing where there is no such process any more. Throws nothing of its own.
std::string proc_file(const std::filesystem::path& file);

}  // namespace lockstep::supervisor

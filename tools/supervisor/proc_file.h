// Files of /proc, whose processes may end while they are read.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>

namespace lockstep::supervisor {

// The text of the file; empty where the process has ended. Throws nothing of its own.
std::string proc_file(const std::filesystem::path& file);
// The same of an open file: empty where its process has ended since.
std::string proc_file(int file);

// A process by /proc/PID/stat.
struct ProcStat {
  char state = 'Z';  // as in proc(5)
  pid_t parent = 0;
};
std::optional<ProcStat> proc_stat(pid_t pid);  // nothing: it has ended

}  // namespace lockstep::supervisor

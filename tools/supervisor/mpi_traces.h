// Files that Open MPI keeps for a job outside of its processes: a session folder below the temporary directory, and
// files in /dev/shm through which ranks exchange (also Lockstep's windows). mpirun removes them, unless it is killed.
// Here they are learnt from the environment and the mappings of the job's own processes while those live, and those
// that are left afterwards are removed: nothing that another user owns, that a living process has mapped, or whose
// mpirun lives. For this machine; traces_sweep() is for others. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>

namespace lockstep::supervisor {

class MpiTraces {
 public:
  // Looks at the processes below this one.
  void look();
  // After the processes have ended. Returns the number of files and folders that were removed.
  std::size_t remove();

  // The jobs seen so far: Open MPI's numbers, in hexadecimal as names of files in /dev/shm have them, and with Open MPI
  // 5 also names, "prterun-HOST-PID", as session folders have them.
  const std::set<std::string>& jobs() const { return jobs_; }

 private:
  void look_at(std::string_view mapped);
  void add_folders_of_processes();

  std::set<std::string> jobs_;
  std::set<int> processes_;  // one of them may be an mpirun that made its folder and no rank yet
  std::set<std::filesystem::path> files_, folders_;
};

// A shell command, without single quotes, that removes files left by these jobs on a host where none of their
// processes lives any more; "" for no jobs.
std::string traces_sweep(const std::set<std::string>& jobs);

}  // namespace lockstep::supervisor

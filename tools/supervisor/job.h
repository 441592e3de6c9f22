// One start of the supervised command, until it has ended: its stderr goes on to ours, signals that come meanwhile go
// on to it, and one that writes nothing into its log folder when it should have started is ended.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tools/supervisor/signals.h"

namespace lockstep::supervisor {

struct JobOptions {
  std::vector<std::string> words{};
  std::map<std::string, std::string> variables{};
  std::filesystem::path output{};         // where its ranks write logs/
  std::chrono::seconds start_limit{300};  // until the first line there; 0: any time
  std::function<bool()>
      wants_stop{};  // asked a few times a second once it has started: whether to stop the job in good order
};

struct JobEnd {
  int status = 0;         // of wait()
  bool asked = false;     // the user wanted the end
  bool stopped = false;   // wants_stop did
  std::string failure{};  // who failed, by what was said on stderr
  std::string words{};    // of a program about its own error
  double seconds = 0;
};

// A job is asked to stop in good order by SIGUSR2, which mpirun and srun hand on to the ranks, while SIGTERM would be
// their end; one that has not opened its logs yet gets SIGTERM. A second request ends it, a third kills the launcher.
JobEnd run_job(const JobOptions& options, Signals& signals);

}  // namespace lockstep::supervisor
